package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"snip/shortener"
)

// What strangers wrote into a list of hosts calls nobody in a chat, is no link under
// another name, and fits into a message of Discord.
func TestWebhookTextIsInert(t *testing.T) {
	t.Parallel()
	posted := make(chan []byte, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		posted <- body
	}))
	t.Cleanup(hook.Close)
	address, err := url.Parse(hook.URL)
	if err != nil {
		t.Fatal(err)
	}
	send := newWebhook(address)
	for _, row := range []struct{ text, slack, discord, ntfy string }{
		{"80 % of 5 – voll.", "80 % of 5 – voll.", "80 % of 5 – voll.", "80 % of 5 – voll."},
		{"@everyone @here", "@\u200beveryone @\u200bhere", "@\u200beveryone @\u200bhere", "@everyone @here"},
		{"<!channel> <@U1> &lt;", "&lt;!channel&gt; &lt;@\u200bU1&gt; &amp;lt;", "<!channel> <@\u200bU1> &lt;", "<!channel> <@U1> &lt;"},
		{"![a](https://evil.example)", "![a]\u200b(https://evil.example)", "![a]\u200b(https://evil.example)", "![a](https://evil.example)"},
		{"a\n# b\r\x1b[2J\x00\x7f\u2028", "a�# b��[2J���", "a�# b��[2J���", "a�# b��[2J���"},
		{"a\u202eb\u200bc\u2066d\ufeffe", "a�b�c�d�e", "a�b�c�d�e", "a�b�c�d�e"},
		{"a\xffb", "a�b", "a�b", "a�b"},
	} {
		if err := send(t.Context(), shortener.Notice{ID: "2026-11-29/blocklist/1", Kind: "blocklist", Text: row.text}); err != nil {
			t.Fatal(err)
		}
		var got struct {
			ID, Kind, Text, Content, Message string
			AllowedMentions                  struct{ Parse []string } `json:"allowed_mentions"`
		}
		body := <-posted
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if got.Text != row.slack || got.Content != row.discord || got.Message != row.ntfy {
			t.Errorf("%q: text %q, content %q, message %q", row.text, got.Text, got.Content, got.Message)
		}
		if got.AllowedMentions.Parse == nil || len(got.AllowedMentions.Parse) > 0 || got.ID != "2026-11-29/blocklist/1" || got.Kind != "blocklist" {
			t.Errorf("%q: %s", row.text, body)
		}
	}
	for _, part := range []string{"é", "@", "]("} {
		m := newMessage(shortener.Notice{Text: strings.Repeat(part, 9000)}, "")
		if n := utf8.RuneCountInString(m.Content); n > 2000 {
			t.Errorf("%d characters for Discord, made of %q", n, part)
		}
		if n := len(m.Message); n > 4096 {
			t.Errorf("%d bytes for ntfy, made of %q", n, part)
		}
	}
}
