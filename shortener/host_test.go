package shortener_test

import (
	"net/url"
	"strings"
	"testing"

	"snip/shortener"
)

func TestParseBlocksOwnHost(t *testing.T) {
	t.Parallel()
	const (
		plain  = "https://s.example"
		inner  = "http://s.example:8080"
		prefix = "https://s.example/go/to/"
		idn    = "https://münchen.example"
		v4     = "http://192.0.2.1"
		v6     = "http://[2001:db8::1]:8080"
	)
	rows := []struct {
		name, public, text string
		blocked            bool
	}{
		{"itself", plain, "https://s.example/abc", true},
		{"no path", plain, "https://s.example", true},
		{"query at once", plain, "https://s.example?x", true},
		{"other scheme", plain, "http://s.example/abc", true},
		{"no scheme", plain, "s.example/abc", true},
		{"capitals and port", plain, "https://S.Example:443/abc", true},
		{"port of http", plain, "https://s.example:80/abc", true},
		{"empty port", plain, "https://s.example:/abc", true},
		{"port with zeros", plain, "https://s.example:0443/abc", true},
		{"trailing dot", plain, "https://s.example./abc", true},
		{"trailing dots", plain, "https://s.example../abc", true},
		{"full-width letters", plain, "https://ｓ.example/abc", true},
		{"circled letter", plain, "https://ⓢ.example/abc", true},
		{"ideographic dot", plain, "https://s。example。/abc", true},
		{"soft hyphen", plain, "https://s\u00ad.example/abc", true},
		{"own port", inner, "http://s.example:8080/abc", true},
		{"own port left out", inner, "http://s.example/abc", true},
		{"port of another program", plain, "https://s.example:8080/abc", false},
		{"port of https", inner, "https://s.example:443/abc", true},
		{"another port", inner, "http://s.example:8081/abc", false},
		{"host below", plain, "https://www.s.example/abc", false},
		{"host above", "https://a.s.example", "https://s.example/abc", false},
		{"own host in the path", plain, "https://example.org/https://s.example/", false},

		{"typed international", idn, "https://MÜNCHEN.example/abc", true},
		{"punycode of international", idn, "https://XN--mnchen-3ya.example./abc", true},
		{"decomposed international", idn, "https://mu\u0308nchen.example/abc", true},
		{"international of punycode", "https://xn--mnchen-3ya.example", "https://münchen.example/abc", true},
		{"dot in the setting", "https://s.example.", "https://s.example/abc", true},

		{"address", v4, "http://192.0.2.1/abc", true},
		{"address as a number", v4, "http://3221225985/abc", true},
		{"address in hexadecimal and octal", v4, "http://0xC0.0.01001/abc", true},
		{"address mapped to IPv6", v4, "http://[::ffff:c000:201]/abc", true},
		{"address behind NAT64", v4, "http://[64:ff9b::192.0.2.1]/abc", true},
		{"other address", v4, "http://8.8.8.8/abc", false},
		{"name instead of an address", v4, "http://example.org/abc", false},
		{"IPv6 address in full", v6, "http://[2001:DB8:0:0::0001]:8080/abc", true},
		{"IPv6 address, other port", "http://[2606:4700::1111]:8080", "http://[2606:4700::1111]:8081/abc", false},

		{"at the prefix", prefix, "https://s.example/go/to", true},
		{"below the prefix", prefix, "https://s.example/go/to/abc?x#y", true},
		{"query at the prefix", prefix, "https://s.example/go/to?x", true},
		{"beside the prefix", prefix, "https://s.example/go/other", false},
		{"longer name", prefix, "https://s.example/go/tomorrow", false},
		{"root of the host", prefix, "https://s.example/", false},
		{"prefix in the query", prefix, "https://s.example/?/go/to/abc", false},
		{"backslashes", prefix, `https://s.example/go\to\abc`, true},
		{"escaped letters", prefix, "https://s.example/%67o/t%6F/abc", true},
		{"escaped slash", prefix, "https://s.example/go%2Fto/abc", true},
		{"escaped backslash", prefix, "https://s.example/go%5Cto/abc", true},
		{"stray percent", prefix, "https://s.example/go/to/%zz%", true},
		{"dot segments", prefix, "https://s.example/x/../go/./to/abc", true},
		{"escaped dot segments", prefix, "https://s.example/x/%2E%2e/go/%2e/to/abc", true},
		{"dots and escaped slashes", prefix, "https://s.example/x%2F..%2Fgo/to/abc", true},
		{"dots above the root", prefix, "https://s.example/../../go/to/abc", true},
		{"repeated slashes", prefix, "https://s.example//go///to/abc", true},
		{"dots that leave", prefix, "https://s.example/go/to/../other", false},
		{"dots that only a browser keeps inside", prefix, "https://s.example/go/to/abc////../..", true},
		{"dots that only a server resolves", prefix, `https://s.example/%2E%2e/go\to/abc%2F..%2F..%2F..%2Fx`, true},
		{"below the prefix of another program", prefix, "https://s.example:8443/go/to/abc", false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			// The own host is refused whatever is allowed beside it.
			for _, allowPrivate := range []bool{false, true} {
				stored, err := rules(t, row.public, allowPrivate).Parse(row.text)
				if row.blocked {
					wantInvalid(t, stored, err, shortener.ErrBlockedDestination, "leads back to this service")
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestParseBlocksPrivate(t *testing.T) {
	t.Parallel()
	blocked := []string{
		"http://127.0.0.1/", "127.0.0.1:8080/x", "http://127.1/", "http://127.0.1/", "http://127.0.0.1./", "http://127.0.0.1../",
		"http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0X7F.1/", "http://0177.0.0.1/",
		"http://0x7f.0x0.0x0.0x1/", "http://00000177.1/", "http://127.255.255.254/",
		"http://１２７.0.0.1/", "http://127。0。0。1/", "http://①②⑦.0.0.1/", "http://０ｘ7f.1/",
		"http://0/", "http://0x/", "http://0.0.0.0:80/", "http://0.1.2.3/",
		"http://10.0.0.1/", "http://10.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1/",
		"http://169.254.169.254/latest/meta-data", "http://100.64.0.1/", "http://100.127.255.255/",
		"http://224.0.0.1/", "http://239.255.255.255/", "http://240.0.0.1/", "http://255.255.255.255/", "http://4294967295/",
		"http://[::1]/", "[::1]/x", "http://[::]/", "http://[0:0:0:0:0:0:0:1]:8080/", "http://[::127.0.0.1]/",
		"http://[::ffff:127.0.0.1]/", "http://[::FFFF:7f00:1]/", "http://[::ffff:0:10.0.0.1]/",
		"http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[64:ff9b:1::1]/", "http://[2002:7f00:1::]/", "http://[2002:c0a8:101::1]/",
		"http://[fc00::1]/", "http://[fdff::1]/", "http://[fe80::1]/", "http://[febf::1]/", "http://[fec0::1]/", "http://[ff02::1]/",
		"http://localhost/", "http://LocalHost:3000/x", "http://localhost./", "http://a.b.localhost/", "foo.localhost/x",
		"http://ｌocalhost/", "http://localhost.localdomain/", "http://localhost6.localdomain6/",
		"http://ip6-localhost/", "http://ip6-loopback./", "http://IP6-AllNodes/", "https://intranet/wiki", "http://notlocalhost/", "http://日本/",
		"https://printer.local/", "http://host.docker.internal:8080/", "http://nas.home.arpa/", "http://home.arpa/", "http://a.service.arpa/",
		"http://resolver.arpa/", "http://ipv4only.arpa/", "http://router.lan/", "http://wiki.corp/", "http://a.intranet/", "http://x.home./", "printer.local/x",
	}
	public := []string{
		"http://126.255.255.255/", "http://128.0.0.1/", "http://1.0.0.0/", "http://9.255.255.255/", "http://11.0.0.0/",
		"http://172.15.255.255/", "http://172.32.0.0/", "http://192.167.255.255/", "http://192.169.0.0/", "http://169.253.0.1/",
		"http://100.63.255.255/", "http://100.128.0.0/", "http://223.255.255.255/",
		"http://[::ffff:8.8.8.8]/", "http://[64:ff9b::8.8.8.8]/", "http://[fbff::1]/",
		"http://localhost.example/", "http://localhost.org/", "http://127.0.0.1.example/", "http://example.org/?u=http://127.0.0.1/",
		"http://notlocal.example/", "http://mylocal.net/", "http://local.example.org/", "http://internal.example.org/", "http://arpa.org/",
	}
	strict, lenient := rules(t, "https://s.example", false), rules(t, "https://s.example", true)
	for _, text := range blocked {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			stored, err := strict.Parse(text)
			wantInvalid(t, stored, err, shortener.ErrBlockedDestination, "leads to a private address")
			if _, err := (shortener.Destinations{}).Parse(text); err == nil {
				t.Error("the zero rules accept it")
			}
			if _, err := lenient.Parse(text); err != nil {
				t.Errorf("although private ones are allowed: %v", err)
			}
		})
	}
	for _, text := range public {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if stored, err := strict.Parse(text); err != nil || stored != text {
				t.Errorf("got %q, %v", stored, err)
			}
		})
	}
}

func TestNewDestinationsRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		public url.URL
		reason string
	}{
		{url.URL{}, "it must start with http or https"},
		{url.URL{Scheme: "ftp", Host: "s.example"}, "it must start with http or https"},
		{url.URL{Scheme: "https", Path: "/s"}, "it must have a host"},
		{url.URL{Scheme: "https", Host: "s.example:99999"}, "it has no valid port"},
		{url.URL{Scheme: "https", Host: "1.2.3.4.5"}, "it has no valid ipv4 address"},
		{url.URL{Scheme: "https", Host: "[fe80::1%eth0]"}, "it has no valid ipv6 address"},
	} {
		_, err := shortener.NewDestinations(&row.public, false)
		if err == nil || !strings.HasSuffix(err.Error(), row.reason) {
			t.Errorf("%s: got %v, want %q", &row.public, err, row.reason)
		}
	}
}

func TestCanonicalHost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Example.ORG":             "example.org",
		"example.org..":           "example.org",
		"my_host.example":         "my_host.example",
		"MÜNCHEN.example":         "xn--mnchen-3ya.example",
		"ＡＢＣ。example":             "abc.example",
		"192.0.2.7":               "192.0.2.7",
		"0xc0.0.2.7.":             "192.0.2.7",
		"3221225991":              "192.0.2.7",
		"[2001:DB8:0:0::1]":       "2001:db8::1",
		"[::ffff:192.0.2.7]":      "192.0.2.7",
		"[64:ff9b::c000:207]":     "192.0.2.7",
		"[2001:db8::192.0.2.7]":   "2001:db8::c000:207",
		"":                        "",
		".":                       "",
		"1.2.3.4.5":               "",
		"2001:db8::1":             "",
		"a b.example":             "",
		"xn--zz.example":          "",
		"m\xfcnchen.example":      "",
		"a\x00.example":           "",
		strings.Repeat("ü.", 600): "",
	} {
		got, err := shortener.CanonicalHost(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q and %v, want %q", text, got, err, want)
		}
		if err != nil {
			continue
		}
		destination := "https://" + text + ":8443/path?q#f"
		if got := shortener.HostOf(destination); got != want {
			t.Errorf("%q: got %q, want %q", destination, got, want)
		}
	}
	for _, destination := range []string{"", "example.org", "https:example.org", "ftp://example.org/", "https://user@example.org/", "https://xn--zz.example/"} {
		if got := shortener.HostOf(destination); got != "" {
			t.Errorf("%q: got %q", destination, got)
		}
	}
}
