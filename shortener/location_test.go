package shortener

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// uri is the grammar of RFC 3986 for a URI with an authority and no user, but for one
// thing: a % that begins no escape, which is sent as it was typed.
var uri = regexp.MustCompile(strings.NewReplacer(
	"REG", `(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})`,
	"PCHAR", `(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%)`,
).Replace(`^[A-Za-z][A-Za-z0-9+.\-]*://(?:\[[0-9A-Fa-f:.]+\]|REG+)(?::[0-9]*)?(?:/PCHAR*)*(?:\?(?:PCHAR|[/?])*)?(?:#(?:PCHAR|[/?])*)?$`))

// wantURI checks that what is sent is a URI, and that nothing but the escapes tells it
// from what was typed.
func wantURI(t *testing.T, typed, location string) {
	t.Helper()
	if !uri.MatchString(location) {
		t.Fatalf("%q is sent as %q, which is no URI", typed, location)
	}
	p, err := split(typed)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := split(location)
	if err != nil || sent.scheme != p.scheme || sent.port != p.port {
		t.Fatalf("%q is sent as %q: %v", typed, location, err)
	}
	wantEscaped(t, p.rest, sent.rest)
	if isASCII(p.host) {
		wantEscaped(t, p.host, sent.host)
	} else if h, err := parseHost(p.host); err == nil {
		wantEscaped(t, h.ascii, sent.host)
	}
}

// wantEscaped goes through both texts together. What was typed is the same byte, or
// one that was escaped; a % stands for itself.
func wantEscaped(t *testing.T, typed, sent string) {
	t.Helper()
	at := 0
	for i := range len(typed) {
		switch rest := sent[at:]; {
		case strings.HasPrefix(rest, typed[i:i+1]):
			at++
		case len(rest) >= 3 && rest[0] == '%':
			if c, err := url.PathUnescape(rest[:3]); err != nil || c != typed[i:i+1] {
				t.Fatalf("%q is sent as %q", typed, sent)
			}
			at += 3
		default:
			t.Fatalf("%q is sent as %q", typed, sent)
		}
	}
	if at != len(sent) {
		t.Fatalf("%q is sent as %q", typed, sent)
	}
}

// Every byte that can stand in a destination is sent as RFC 3986 allows it there.
func TestLocationIsURI(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"https://a%b.example/", "https://example.org/a%b/", "https://example.org/?a%b=", "https://example.org/#a%b"} {
		for c := rune(0x20); c < 0x800; c++ {
			destination := strings.Replace(part, "%", string(c), 1)
			stored, err := (Destinations{}).Parse(destination)
			if err != nil {
				continue // it cannot stand there
			}
			location := Location(stored)
			wantURI(t, stored, location)
			if again := Location(location); again != location {
				t.Fatalf("a second look makes %q of %q", again, location)
			}
		}
	}
}

// An escape that is there, whole or not, is never escaped again.
func TestLocationKeepsPercentSigns(t *testing.T) {
	t.Parallel()
	for _, destination := range []string{
		"https://example.org/%20%2f%2F%zz%", "https://example.org/?a=%25%20&b=100%", "https://example.org/#%E2%80%8B%e", "https://example.org/%%20",
	} {
		if got := Location(destination); got != destination {
			t.Errorf("%q is sent as %q", destination, got)
		}
		if got, want := Location(destination+" %20"), destination+"%20%20"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A destination that is a URI already, as nearly all are, costs nothing to send.
func TestLocationOfURIAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Location("https://www.example.org/some/where?and=more#there") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Thousands of links that people really made, raw blanks and all, are stored as they
// are and sent as URIs.
func TestParseKeepsRealDestinations(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/urls.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	n, same := 0, 0
	lines := bufio.NewReader(unzipped)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // what follows the last newline was cut off where the file was
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		text := strings.TrimSuffix(line, "\n")
		stored, err := (Destinations{}).Parse(text)
		if err != nil || stored != text {
			t.Errorf("%q: got %q, %v", text, stored, err)
			continue
		}
		location := Location(stored)
		wantURI(t, stored, location)
		if location == stored {
			same++
		}
	}
	if n != 48009 || same < 47000 {
		t.Errorf("read %d destinations, want 48009; %d of them are URIs", n, same)
	}
}
