package web

import (
	"strings"
	"testing"
)

func TestNegotiate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		accept []string
		want   format
	}{
		{nil, formatJSON},
		{[]string{""}, formatJSON},
		{[]string{"*/*"}, formatJSON},
		{[]string{"application/json"}, formatJSON},
		{[]string{"application/problem+json"}, formatJSON},
		{[]string{"application/*"}, formatJSON},
		{[]string{"text/plain"}, formatText},
		{[]string{"TEXT/Plain; charset=utf-8"}, formatText},
		{[]string{"text/html"}, formatHTML},
		{[]string{"text/*"}, formatText},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}, formatHTML},
		{[]string{"text/html, application/json"}, formatJSON},
		{[]string{"text/html, text/plain"}, formatText},
		{[]string{"application/json;q=0.5, text/plain;q=0.6, text/html;q=0.4"}, formatText},
		{[]string{"application/json;q=0.5", "text/html; level=1; q=0.9"}, formatHTML},
		{[]string{"text/html;q=0, */*"}, formatJSON},
		{[]string{"application/json;q=0, */*;q=0.1"}, formatText},
		{[]string{"*/*;q=0.9, application/json;q=0.1"}, formatText},
		{[]string{"image/png"}, formatJSON},
		{[]string{"text/html;q=0"}, formatJSON},
		{[]string{"text/html;q=2, text/plain;q=0.1"}, formatText},
		{[]string{"text/html;q=x, text/plain;q=NaN"}, formatJSON},
		{[]string{",,;;q=1,/"}, formatJSON},
	} {
		if got := negotiate(row.accept); got != row.want {
			t.Errorf("%q: %d, want %d", row.accept, got, row.want)
		}
	}
}

// Whatever a header says, the format is one of ours, two lines mean what one with
// a comma does, and only a format that is named or covered by a wildcard is given
// to whoever would otherwise get JSON.
func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "TEXT/Plain; charset=utf-8; q=0.1",
		"application/json;q=0, */*", ",,;;q=1,/", "text/html;q=NaN", "text/html;q=1e-400", "text/html;q=0x1p-2", "text/*;q=+1;q=2",
	} {
		f.Add(seed, "text/plain")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		got := negotiate([]string{first, second})
		if joined := negotiate([]string{first + "," + second}); joined != got {
			t.Errorf("%q and %q: %d in two lines, %d in one", first, second, got, joined)
		}
		named := strings.ToLower(first + "," + second)
		switch got {
		case formatJSON:
		case formatText, formatHTML:
			if !strings.Contains(named, "text/") && !strings.Contains(named, "*/*") {
				t.Errorf("%q and %q: format %d, which neither asks for", first, second, got)
			}
		default:
			t.Errorf("%q and %q: format %d", first, second, got)
		}
	})
}
