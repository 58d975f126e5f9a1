package shortener_test

import (
	"strings"
	"testing"
	"unicode"

	"snip/shortener"
)

// Two destinations with white space of any kind, or a comma, between them are no link.
func TestParseRefusesTwoDestinations(t *testing.T) {
	t.Parallel()
	d := rules(t, "https://s.example", false)
	refused := []string{
		"https://example.org/1 see https://example.org/2", "see https://example.org/", "Example: https://example.org/",
		"https://example.org/1 ftp://example.org/2", "https://example.org/1,obsidian://x", "example.org/1 https://example.org/2",
		`https://example.org/1 "https://example.org/2"`, "https://example.org/1,<https://example.org/2>", "https://example.org/1 (https://example.org/2)",
		"https://example.org/1 HTTPS://example.org/2", "https://example.org/1; https://example.org/2", "https://example.org/?q=1\n\thttps://example.org/2",
		"https://example.org https://example.org", "https://example.org, https://example.org",
		"https://example.org/" + strings.Repeat("x", shortener.MaxDestination) + " https://example.org/",
	}
	for c := range unicode.MaxRune {
		if unicode.IsSpace(c) || shortener.Invisible(c) || c == ',' || c == '，' || c == '、' || c == '،' {
			for _, between := range []string{string(c), string(c) + " ", " " + string(c), string(c) + string(c)} {
				refused = append(refused, "https://example.org/1"+between+"https://example.org/2")
			}
		}
	}
	for _, text := range refused {
		stored, err := d.Parse(text)
		wantInvalid(t, stored, err, shortener.ErrInvalidURL, "must be one address")
	}
	for _, text := range []string{
		"https://web.archive.org/web/2020/https://example.org/", "https://example.org/?u=https://example.org/", "https://example.org/a,b?c,d#e,f",
		"https://example.org/?u=a%20https://example.org/", "https://example.org/?u=%2Chttps://example.org/", "https://example.org/?a=1&u=(https://example.org/)",
		"https://example.org/clk;1;https://example.org/", "https://example.org/https:example.org", "https://example.org/#Swiss Goats", "https://example.org/ ://",
		"https://example.org/#:~:text=a,b", "https://example.org/Talk: a, b", "https://example.org/|https://example.org/",
	} {
		if stored, err := d.Parse(text); err != nil || stored != text {
			t.Errorf("%q: got %q, %v", text, stored, err)
		}
	}
}

// Whatever cannot be seen leaves no trace at either end: white space is cut off, and
// the rest is refused. A host that an operator blocks is the one that is seen.
func TestParseRefusesInvisibleEnds(t *testing.T) {
	t.Parallel()
	d := rules(t, "https://s.example", false)
	n := 0
	for c := range unicode.MaxRune {
		if !shortener.Invisible(c) && !unicode.IsSpace(c) {
			continue
		}
		n++
		for _, text := range []string{"https://example.org/a", "example.org", "https://example.org/?q=ü"} {
			for _, typed := range []string{string(c) + text, text + string(c), " " + string(c) + "\t" + text, text + "\u3000" + string(c) + " "} {
				stored, err := d.Parse(typed)
				if want := strings.TrimSpace(typed); unicode.IsSpace(c) && err == nil && strings.HasSuffix(stored, want) {
					continue
				}
				if err == nil || unicode.IsSpace(c) {
					t.Errorf("%+q: got %+q, %v", typed, stored, err)
				}
			}
		}
		for _, typed := range []string{string(c) + "evil.example", "evil.example" + string(c)} {
			if host, err := shortener.CanonicalHost(typed); err == nil && host != "evil.example" {
				t.Errorf("%+q is taken for the host %q", typed, host)
			}
		}
	}
	if n < 400 {
		t.Errorf("%d characters were tried", n)
	}
	for c, want := range map[rune]bool{'a': false, ' ': false, 'é': false, '\u0301': false, '☕': false, '한': false,
		'\u00a0': true, '\u200b': true, '\u2028': true, '\u202e': true, '\ufe0f': true, '\u115f': true, '\u17b4': true, '\u180b': true, '\uffa0': true,
		'\U000e0041': true, '\U000e0100': true, '\u034f': true, '\u2064': true, '\u2800': true} {
		if got := shortener.Invisible(c); got != want {
			t.Errorf("%U: got %t", c, got)
		}
	}
}
