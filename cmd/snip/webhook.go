package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"snip/shortener"
)

// webhookTime bounds one attempt.
const webhookTime = 10 * time.Second

// mostText bounds the characters of a notice's text. Discord refuses a message of
// more than 2,000 and ntfy one of more than 4,096 bytes, and every notice behind it
// would wait for ever.
const mostText = 600

// message is what is posted. The text stands under the names that Slack (text),
// Discord (content) and ntfy (message) look for.
type message struct {
	shortener.Notice
	Text            string   `json:"text"` // in place of the notice's
	Content         string   `json:"content"`
	AllowedMentions mentions `json:"allowed_mentions"` // Discord's; nobody is called
	Message         string   `json:"message"`
	Title           string   `json:"title"`
	Topic           string   `json:"topic,omitempty"` // ntfy's
}

// mentions are whom a text in Discord may call. Empty is nobody; absent would be
// everybody whom the text names.
type mentions struct {
	Parse []string `json:"parse"`
}

// newMessage returns what is posted of a notice. A part of the text may come from
// strangers, such as the line of a block list that was not understood.
func newMessage(n shortener.Notice, topic string) message {
	plain := plainText(n.Text)
	content := inert.Replace(plain)
	return message{
		Notice:          n,
		Text:            slackEscapes.Replace(content),
		Content:         content,
		AllowedMentions: mentions{Parse: []string{}},
		Message:         plain,
		Title:           "Snip",
		Topic:           topic,
	}
}

var (
	// inert keeps a chat from reading a call of people (@everyone, @channel) or a link
	// under another name ([bank](https://evil.example)) in a text.
	inert = strings.NewReplacer("@", "@\u200b", "](", "]\u200b(")
	// slackEscapes are those that Slack asks for; <!everyone> is a call there.
	slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
)

// plainText returns a text of one line and at most mostText characters, with a
// replacement character for each that is invisible or changes how others are shown.
func plainText(text string) string {
	characters := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	for i, c := range characters {
		if c != ' ' && !unicode.IsGraphic(c) || unicode.In(c, unicode.Zl, unicode.Zp) {
			characters[i] = '\uFFFD'
		}
	}
	if len(characters) > mostText {
		characters = append(characters[:mostText-1], '…')
	}
	return string(characters)
}

// newWebhook returns what posts a notice to an address. ntfy's topic is what follows
// a # in the address.
func newWebhook(address *url.URL) func(context.Context, shortener.Notice) error {
	target := *address
	topic := target.Fragment
	target.Fragment = ""
	client := http.Client{
		Timeout:       webhookTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, n shortener.Notice) error {
		body, err := json.Marshal(newMessage(n, topic))
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
		if err != nil {
			return errors.New("the address cannot be used")
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			// Its message would show the address, which is a secret.
			if inner, ok := errors.AsType[*url.Error](err); ok {
				err = inner.Err
			}
			return fmt.Errorf("no answer: %w", err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
		if response.StatusCode/100 != 2 {
			return fmt.Errorf("it answered %s", response.Status)
		}
		return nil
	}
}

// parseWebhook returns nil where there is none.
func parseWebhook(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(text, " ") {
		return nil, errors.New("an http or https URL with a host is needed")
	}
	if schemeTwice(u) {
		return nil, errSchemeTwice
	}
	return u, nil
}
