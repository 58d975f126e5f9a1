package shortener

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func FuzzDestination(f *testing.F) {
	for _, seed := range []string{
		"https://example.org/a//b/../c%2Fd?q=a%2Bb&k#é",
		"HTTP://EXAMPLE.org:8080\t",
		"example.org/page",
		"münchen.example/straße",
		"https://☕.example:443?x",
		"https://s.example./go/%2e%2e/to",
		"http://0x7f.1/", "http://[::ffff:7f00:1]:80/", "https://[64:ff9b::8.8.8.8]",
		"https://user:pw@example.org/", `https:\\example.org\@evil.example/`,
		"JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "data:text/html,x", "mailto:a@example.org",
		"//evil.example/x", "https:///x", "https://xn--zz.example", "https://℀.org", "https://a＠b.example/",
		"https://example.org/\r\nSet-Cookie: a=b", "https://example.org/\xff", "https://example.org/100%",
		`https://"a".example/<x>"{}|^[]?a b#c#d`,
	} {
		f.Add(seed)
	}
	public, err := url.Parse("https://s.example/go")
	if err != nil {
		f.Fatal(err)
	}
	d, err := NewDestinations(public, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Whatever it is given, a location fits into a header.
		wantPrintable(t, Location(text))

		stored, err := d.Parse(text)
		if err != nil {
			wantFitReason(t, err)
			return
		}
		if trimmed := strings.TrimSpace(text); stored != trimmed && stored != "https://"+trimmed {
			t.Fatalf("altered to %q", stored)
		}
		if !utf8.ValidString(stored) || strings.ContainsFunc(stored, unicode.IsControl) || len(stored) > MaxDestination {
			t.Fatalf("stored %q", stored)
		}
		if again, err := d.Parse(stored); err != nil || again != stored {
			t.Fatalf("a second look makes %q of %q: %v", again, stored, err)
		}

		location := Location(stored)
		wantURI(t, stored, location)
		if again := Location(location); again != location {
			t.Fatalf("a second look makes %q of %q", again, location)
		}
		// The same rules hold for what is sent as for what was typed, but that a host
		// may be sent with escapes.
		if again, err := d.Parse(location); len(location) <= MaxDestination && !escapedHost(location) && (err != nil || again != location) {
			t.Fatalf("%q is accepted but its location %q is not: %v", stored, location, err)
		}
		scheme, rest, _ := strings.Cut(location, "://")
		if s := strings.ToLower(scheme); s != "http" && s != "https" {
			t.Fatalf("scheme %q", scheme)
		}
		// What a browser takes for the authority ends at a backslash too.
		authority := rest
		if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
			authority = rest[:i]
		}
		if authority == "" || strings.Contains(authority, "@") {
			t.Fatalf("authority %q", authority)
		}
		if u, err := url.Parse(location); err == nil && (u.User != nil || u.Host != authority) {
			t.Fatalf("net/url sees user %v and host %q, not %q", u.User, u.Host, authority)
		}
	})
}

func escapedHost(location string) bool {
	p, err := split(location)
	return err == nil && strings.Contains(p.host, "%")
}

func wantPrintable(t *testing.T, location string) {
	t.Helper()
	if i := strings.IndexFunc(location, func(c rune) bool { return c < ' ' || c > '~' }); i >= 0 {
		t.Fatalf("location %q", location)
	}
}

func FuzzParseSlug(f *testing.F) {
	for _, seed := range []string{"", "ab", "abc", "MyEvent", "-abc", "abc_", "a b", "api", "API", "a\x00b", "äöü", "ab\xff",
		strings.Repeat("x", MaxSlug), strings.Repeat("x", MaxSlug+1)} {
		f.Add(seed)
	}
	rules := newSlugRules([]string{"api"}, nil)
	f.Fuzz(func(t *testing.T, text string) {
		slug, ok := ParseSlug(text)
		if ok && string(slug) != text || !ok && slug != "" {
			t.Fatalf("altered to %q", slug)
		}
		if ok && url.PathEscape(text) != text {
			t.Fatal("accepted, although it has to be escaped in a path")
		}
		chosen, err := rules.parse(text)
		if wanted := ok && !rules.isReserved(slug) || text == ""; wanted != (err == nil) {
			t.Fatalf("well-formed %t, chosen: %v", ok, err)
		}
		if err == nil {
			if string(chosen) != text {
				t.Fatalf("altered to %q", chosen)
			}
			return
		}
		wantFitReason(t, err)
	})
}

// wantFitReason checks that a sentence can be made of the error's reason, which
// shows nothing of what was typed that is long or not printable.
func wantFitReason(t *testing.T, err error) {
	t.Helper()
	var invalid *InvalidError
	if !errors.As(err, &invalid) || invalid.Reason.Name == "" {
		t.Fatalf("unfit error %q", err)
	}
	for name, value := range invalid.Reason.Values {
		switch v := value.(type) {
		case int:
		case string:
			if len(v) > 150 || v == "" || !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
				t.Fatalf("unfit %s %q", name, v)
			}
		default:
			t.Fatalf("unfit %s of type %T", name, v)
		}
	}
}
