package shortener_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"snip/shortener"
)

var (
	long     = "https://example.org/" + strings.Repeat("x", shortener.MaxDestination-len("https://example.org/"))
	longHost = strings.Repeat("abcdefg.", 31) + "quite" // 253 bytes
)

func rules(t *testing.T, public string, allowPrivate bool) shortener.Destinations {
	t.Helper()
	u, err := url.Parse(public)
	if err != nil {
		t.Fatal(err)
	}
	d, err := shortener.NewDestinations(u, allowPrivate)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// acceptedRow is a row of testdata/accepted.json.
type acceptedRow struct{ Name, Text, Stored, Location string } // stored and location as text when empty

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	d := rules(t, "https://s.example", false)
	file, err := os.ReadFile("testdata/accepted.json")
	if err != nil {
		t.Fatal(err)
	}
	rows := []acceptedRow{
		{Name: "longest", Text: long},
		{Name: "longest host", Text: "https://" + longHost + "./"},
	}
	var more []acceptedRow
	if err := json.Unmarshal(file, &more); err != nil {
		t.Fatal(err)
	}
	for _, row := range append(rows, more...) {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			stored, err := d.Parse(row.Text)
			if err != nil {
				t.Fatal(err)
			}
			want := cmp.Or(row.Stored, row.Text)
			if stored != want {
				t.Errorf("stored %q, want %q", stored, want)
			}
			want = cmp.Or(row.Location, want)
			if got := shortener.Location(stored); got != want {
				t.Errorf("location %q, want %q", got, want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	d := rules(t, "https://s.example", false)
	const noScheme = "must start with http or https"
	rows := []struct{ name, text, reason string }{
		{"empty", "", "must not be empty"},
		{"blanks", " \t\n", "must not be empty"},
		{"too long", long + strings.Repeat("x", 20), "has too many bytes, Bytes 8212, Max 8192"},
		{"one byte too long", long + "x", "has too many bytes, Bytes 8193, Max 8192"},
		{"too long with the scheme added", "example.org/" + strings.Repeat("x", shortener.MaxDestination-len("example.org/")), "has too many bytes, Bytes 8200, Max 8192"},
		{"invalid UTF-8", "https://example.org/\xff", "must be utf8"},
		{"NUL", "https://example.org/\x00", "must not contain the control character, Character U+0000"},
		{"header injection", "https://example.org/\r\nSet-Cookie: a=b", "must not contain the control character, Character U+000D"},
		{"DEL", "https://example.org/\x7f", "must not contain the control character, Character U+007F"},
		{"C1 control", "https://example.org/\u0085x", "must not contain the control character, Character U+0085"},
		{"invisible mark in front", "\ufeffhttps://example.org/", "must not begin with the invisible character, Character U+FEFF"},
		{"invisible in front of a host", "\u200bexample.org", "must not begin with the invisible character, Character U+200B"},
		{"invisible in front of a blank", " \u2060 https://example.org/", "must not begin with the invisible character, Character U+2060"},
		{"invisible at the end", "https://example.org/a\u200b", "must not end with the invisible character, Character U+200B"},
		{"invisible before blanks", "https://example.org/?q=a\u200e \u00a0", "must not end with the invisible character, Character U+200E"},
		{"invisible at the end of a host", "example.org\u00ad", "must not end with the invisible character, Character U+00AD"},
		{"variation selector at the end", "https://example.org/\u2764\ufe0f", "must not end with the invisible character, Character U+FE0F"},
		{"filler at the end", "https://example.org/#\u3164", "must not end with the invisible character, Character U+3164"},
		{"blank pattern of Braille at the end", "https://example.org/\u2800", "must not end with the invisible character, Character U+2800"},
		{"invisible alone", "\u200b", "must not begin with the invisible character, Character U+200B"},

		{"javascript", "javascript:alert(1)", noScheme},
		{"javascript in mixed case", "JaVaScRiPt:alert(1)", noScheme},
		{"javascript behind blanks", "  javascript:alert(1)", noScheme},
		{"javascript behind a control byte", "\x01javascript:alert(1)", "must not contain the control character, Character U+0001"},
		{"javascript with a tab", "java\tscript:alert(1)", "must not contain the control character, Character U+0009"},
		{"javascript with slashes", "javascript://example.org/%0aalert(1)", noScheme},
		{"data", "data:text/html,<script>alert(1)</script>", noScheme},
		{"mailto", "mailto:a@example.org", noScheme},
		{"ftp", "ftp://example.org/", noScheme},
		{"scheme of an app", "com.example.app://open", noScheme},
		{"scheme within a scheme", "view-source:https://example.org", noScheme},
		{"long s folds to s", "httpſ://example.org/", noScheme},
		{"blank in the scheme", "https ://example.org/", noScheme},

		{"mail address", "a@example.org", noScheme},
		{"plain word", "example", noScheme},
		{"sentence", "see example.org", noScheme},
		{"number", "3.14", noScheme},
		{"abbreviation", "e.g.", noScheme},
		{"version", "v1.2b", noScheme},
		{"local name and port", "localhost:8080/x", noScheme},
		{"hexadecimal address without a scheme", "0xC0000201/x", noScheme},
		{"no scheme, quote", `"example.org"`, noScheme},
		{"no scheme, no host", "//example.org/x", noScheme},
		{"path", "/x", noScheme},
		{"no scheme, backslash", `\\example.org\x`, noScheme},
		{"no scheme, port too high", "example.org:65536/x", "has no valid port"},

		{"no slashes", "http:example.org", "must have slashes after the scheme"},
		{"scheme twice", "http://http://example.org", "has its scheme twice"},
		{"scheme twice, mistyped", "https://HTTPS//example.org", "has its scheme twice"},
		{"scheme of an app behind a scheme", "https://obsidian://x", "has its scheme twice"},
		{"scheme of an app in capitals", "HTTP://Com.Example.App://open?x=1", "has its scheme twice"},
		{"scheme twice, the first in an address", "https://example.org://example.org/", "has its scheme twice"},
		{"scheme twice behind a bracket", "https://(https://example.org/)", "has its scheme twice"},
		{"scheme of an app without a scheme", "obsidian://x", noScheme},
		{"one slash", "http:/example.org", "must have slashes after the scheme"},
		{"backslashes for slashes", `https:\\example.org`, "must have slashes after the scheme"},
		{"slash and backslash", `https:/\example.org`, "must have slashes after the scheme"},
		{"three slashes", "https:///example.org", "must have a host"},
		{"scheme alone", "https://", "must have a host"},
		{"port alone", "https://:80/", "must have a host"},
		{"dots alone", "https://../x", "must have a host that is more than dots"},
		{"soft hyphen alone", "https://\u00ad/", "must have a host that is more than dots"},

		{"user", "https://user@example.org/", "must not contain an at sign"},
		{"user and password", "https://example.org:443@evil.example/", "must not contain an at sign"},
		{"empty user", "https://@example.org/", "must not contain an at sign"},
		{"full-width at sign", "https://user＠example.org/", `must not contain in its host, Character "@"`},
		{"backslash before the path", `https://example.org\@evil.example/`, "must not contain a backslash"},
		{"backslash for the slash", `https://example.org\x`, "must not contain a backslash"},

		{"port not a number", "https://example.org:http/", "has no valid port"},
		{"signed port", "https://example.org:+80/", "has no valid port"},
		{"port too high", "https://example.org:65536/", "has no valid port"},
		{"full-width port", "https://example.org:８０/", "has no valid port"},
		{"blank after the port", "https://example.org:80 /", "has no valid port"},

		{"blank in the host", "https://exam ple.org/", `must not contain in its host, Character " "`},
		{"percent in the host", "https://ex%61mple.org/", `must not contain in its host, Character "%"`},
		{"angle in the host", "https://<b>.example.org/", `must not contain in its host, Character "<"`},
		{"caret in the host", "https://a^b.example.org/", `must not contain in its host, Character "^"`},
		{"bar in the host", "https://a|b.example.org/", `must not contain in its host, Character "|"`},
		{"closing bracket in the host", "https://a]b.example.org/", `must not contain in its host, Character "]"`},
		{"IPv6 without brackets", "https://2001:db8::1/", `must not contain in its host, Character ":"`},
		{"slash by mapping", "https://℀.example/", `must not contain in its host, Character "/"`},
		{"leading dot", "https://.example.org/", "must not have a host with empty labels"},
		{"two dots", "https://example..org/", "must not have a host with empty labels"},

		{"host longer than any name", "https://" + longHost + "x./", "has too long a host, Max 253"},
		{"host that punycode takes long for", "https://" + strings.Repeat("日本語", 900) + ".example/", "has too long a host, Max 253"},

		{"bad punycode", "https://xn--zz.example/", "has no valid international name"},
		{"empty punycode", "https://xn--.example/", "has no valid international name"},
		{"empty punycode at the end", "https://example.xn--/", "has no valid international name"},
		{"direction mark in the host", "https://\u202egro.example/", "has no valid international name"},
		{"joiner out of place", "https://a\u200db.example/", "has no valid international name"},
		{"mixed directions", "https://מa.example/", "has no valid international name"},

		{"number too high", "https://256.0.0.1/", "has no valid ipv4 address"},
		{"last number too high", "https://1.2.65536/", "has no valid ipv4 address"},
		{"five numbers", "https://1.2.3.4.0/", "has no valid ipv4 address"},
		{"bad octal", "https://1.2.3.09/", "has no valid ipv4 address"},
		{"name before a number", "https://example.1/", "has no valid ipv4 address"},
		{"name before a hexadecimal number", "https://example.0x1f/", "has no valid ipv4 address"},
		{"larger than any address", "https://4294967296/", "has no valid ipv4 address"},
		{"far larger", "https://99999999999999999999/", "has no valid ipv4 address"},

		{"bad IPv6", "https://[2001:db8::1::2]/", "has no valid ipv6 address"},
		{"open bracket", "https://[2001:db8::1/", "has no valid ipv6 address"},
		{"text after the bracket", "https://[2001:db8::1]x/", "has no valid ipv6 address"},
		{"zone", "https://[fe80::1%25eth0]/", "has no valid ipv6 address"},
		{"IPv4 in brackets", "https://[192.0.2.1]/", "has no valid ipv6 address"},
		{"empty brackets", "https://[]/", "has no valid ipv6 address"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stored, err := d.Parse(row.text)
			wantInvalid(t, stored, err, shortener.ErrInvalidURL, row.reason)
		})
	}
}

func wantInvalid(t *testing.T, stored string, err, kind error, reason string) {
	t.Helper()
	var invalid *shortener.InvalidError
	if stored != "" || !errors.As(err, &invalid) {
		t.Fatalf("got %q, %v, want an InvalidError", stored, err)
	}
	if invalid.Field != "url" || !errors.Is(err, kind) || invalid.Reason.Error() != reason {
		t.Errorf("got %q of kind %q for the field %q, want %q of kind %q",
			invalid.Reason, invalid.Kind, invalid.Field, reason, kind)
	}
}

// BenchmarkLocation is paid when a link is read, and at each redirect that hands a
// query on.
func BenchmarkLocation(b *testing.B) {
	for name, destination := range map[string]string{
		"ascii":         "https://www.example.org/some/where?and=more#there",
		"international": "https://münchen.example/straße",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				shortener.Location(destination)
			}
		})
	}
}
