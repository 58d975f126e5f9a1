package web

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"snip/quota"
)

func TestFindClient(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:aaaa::/48"), netip.MustParsePrefix("::ffff:192.0.2.0/120"),
	}
	const peer, xff = "10.0.0.1:5000", "X-Forwarded-For"
	for _, row := range []struct {
		name   string
		header string // the one that is set up
		peer   string
		sent   http.Header
		want   string
	}{
		{"straight", xff, "203.0.113.1:5000", nil, "203.0.113.1"},
		{"straight and forged", xff, "203.0.113.1:5000", http.Header{xff: {"1.1.1.1"}, "Forwarded": {"for=1.1.1.1"}, "X-Real-Ip": {"1.1.1.1"}}, "203.0.113.1"},
		{"a private peer that is not listed", xff, "172.17.0.1:5000", http.Header{xff: {"1.1.1.1"}}, "172.17.0.1"},
		{"loopback that is not listed", xff, "127.0.0.1:5000", http.Header{xff: {"1.1.1.1"}}, "127.0.0.1"},
		{"one proxy", xff, peer, http.Header{xff: {"203.0.113.5"}}, "203.0.113.5"},
		{"a mapped peer", xff, "[::ffff:10.0.0.1]:5000", http.Header{xff: {"203.0.113.5"}}, "203.0.113.5"},
		{"a proxy listed in mapped form", xff, "192.0.2.7:5000", http.Header{xff: {"203.0.113.5"}}, "203.0.113.5"},
		{"a peer with a zone", xff, "[2001:db8:aaaa::1%eth0]:5000", http.Header{xff: {"203.0.113.5"}}, "203.0.113.5"},
		{"forged before the proxy's", xff, peer, http.Header{xff: {"1.1.1.1, 203.0.113.5"}}, "203.0.113.5"},
		{"forged garbage before it", xff, peer, http.Header{xff: {`"<x>, unknown, 203.0.113.5`}}, "203.0.113.5"},
		{"two proxies", xff, peer, http.Header{xff: {"1.1.1.1, 203.0.113.5, 10.9.9.9"}}, "203.0.113.5"},
		{"several lines", xff, peer, http.Header{xff: {"1.1.1.1", "203.0.113.5", "10.9.9.9"}}, "203.0.113.5"},
		{"all listed", xff, peer, http.Header{xff: {"10.1.1.1, 10.2.2.2"}}, "10.0.0.1"},
		{"missing", xff, peer, nil, "10.0.0.1"},
		{"empty", xff, peer, http.Header{xff: {""}}, "10.0.0.1"},
		{"only the other header", xff, peer, http.Header{"Forwarded": {"for=1.1.1.1"}}, "10.0.0.1"},
		{"unknown", xff, peer, http.Header{xff: {"1.1.1.1, unknown"}}, "10.0.0.1"},
		{"obfuscated", xff, peer, http.Header{xff: {"1.1.1.1, _hidden"}}, "10.0.0.1"},
		{"garbage", xff, peer, http.Header{xff: {"1.1.1.1, 300.1.1.1"}}, "10.0.0.1"},
		{"a comma at the end", xff, peer, http.Header{xff: {"1.1.1.1,"}}, "10.0.0.1"},
		{"garbage behind a listed one", xff, peer, http.Header{xff: {"1.1.1.1, x, 10.2.2.2"}}, "10.0.0.1"},
		{"with a port", xff, peer, http.Header{xff: {"1.2.3.4:5678"}}, "1.2.3.4"},
		{"with quotes and blanks", xff, peer, http.Header{xff: {` "1.2.3.4" `}}, "1.2.3.4"},
		{"mapped", xff, peer, http.Header{xff: {"::FFFF:1.2.3.4"}}, "1.2.3.4"},
		{"IPv6", xff, peer, http.Header{xff: {"2001:DB8:0::1"}}, "2001:db8::1"},
		{"IPv6 in brackets", xff, peer, http.Header{xff: {"[2001:db8::1]"}}, "2001:db8::1"},
		{"IPv6 with a port", xff, peer, http.Header{xff: {"[2001:db8::1]:443"}}, "2001:db8::1"},
		{"IPv6 with a zone", xff, peer, http.Header{xff: {"fe80::1%eth0"}}, "fe80::1"},
		{"IPv4 in brackets", xff, peer, http.Header{xff: {"[1.2.3.4]"}}, "10.0.0.1"},
		{"an open bracket", xff, peer, http.Header{xff: {"[2001:db8::1"}}, "10.0.0.1"},
		{"text behind the bracket", xff, peer, http.Header{xff: {"[2001:db8::1]x"}}, "10.0.0.1"},
		{"another header", "cf-connecting-ip", peer, http.Header{"Cf-Connecting-Ip": {"203.0.113.5"}, xff: {"1.1.1.1"}}, "203.0.113.5"},
		{"a Unix socket", xff, "@", http.Header{xff: {"1.1.1.1"}}, "invalid IP"},

		{"Forwarded", "forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1, for=203.0.113.5;proto=https;by=10.0.0.1"}}, "203.0.113.5"},
		{"Forwarded IPv6", "Forwarded", peer, http.Header{"Forwarded": {`proto=https; For="[2001:DB8::1]:4711"`}}, "2001:db8::1"},
		{"Forwarded on two lines", "Forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1", "for=203.0.113.5, for=10.3.3.3"}}, "203.0.113.5"},
		{"Forwarded unknown", "Forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1, for=unknown"}}, "10.0.0.1"},
		{"Forwarded without for", "Forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1, proto=https"}}, "10.0.0.1"},
		{"Forwarded with for twice", "Forwarded", peer, http.Header{"Forwarded": {"for=203.0.113.5;for=1.1.1.1"}}, "10.0.0.1"},
		{"Forwarded with a host that holds an element", "Forwarded", peer, http.Header{"Forwarded": {`for=203.0.113.5;host="x,for=1.1.1.1;y="`}}, "203.0.113.5"},
		{"Forwarded with an escaped quote", "Forwarded", peer, http.Header{"Forwarded": {`for=203.0.113.5;host="x\",for=1.1.1.1"`}}, "203.0.113.5"},
		{"Forwarded after an open quote", "Forwarded", peer, http.Header{"Forwarded": {`for=", for=203.0.113.5;host="x,for=1.1.1.1;y="`}}, "10.0.0.1"},
		{"Forwarded after an open quote on its own line", "Forwarded", peer, http.Header{"Forwarded": {`for="`, "for=203.0.113.5"}}, "203.0.113.5"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: row.peer, Header: row.sent}
			if got := newClientFinder(proxies, row.header).find(r).addr.String(); got != row.want {
				t.Errorf("client %s, want %s", got, row.want)
			}
		})
	}
}

// The forms of one address are one client, and a forged header makes no second.
func TestOneClientInManyForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{policy: &quota.Policy{Client: 4}, proxies: []string{"10.0.0.0/8"}})
	for _, form := range []string{"198.51.100.7", "198.51.100.7:99", "::ffff:198.51.100.7", "9.9.9.9, 64:ff9b::c633:6407"} {
		w := s.do(call{from: "10.0.0.1:1", body: goodJSON, header: map[string]string{"Content-Type": mediaJSON, "X-Forwarded-For": form}})
		wantAnswer(t, w, http.StatusCreated, "")
	}
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP"} {
		w := s.do(call{from: "198.51.100.7:1", body: goodJSON, header: map[string]string{"Content-Type": mediaJSON, header: "8.8.8.8"}})
		wantAnswer(t, w, http.StatusTooManyRequests, "")
	}
}

// FuzzForwarded: whatever a header holds, the client is the peer or an address
// that stands in it.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{
		"", "1.2.3.4", "1.2.3.4:5, [2001:db8::1]:443", `for="[2001:db8::1]:443";proto=https, for=1.2.3.4`,
		`for="`, `for="\"`, "unknown, _hidden", "::ffff:1.2.3.4", "fe80::1%eth0", "10.0.0.2,10.0.0.3", "[::]:0,]",
	} {
		f.Add(seed, seed)
	}
	f.Add("::", "::1% 0") // a zone of a blank and a digit
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	peer := netip.MustParseAddr("10.0.0.1")
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
			r := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{header: {first, second}}}
			got := newClientFinder(proxies, header).find(r).addr
			if got == peer {
				continue
			}
			literal := func(text string) bool {
				addr, err := netip.ParseAddr(text)
				if err != nil { // perhaps an IPv4 address with a port
					host, _, _ := strings.Cut(text, ":")
					addr, err = netip.ParseAddr(host)
				}
				return err == nil && addr.Unmap().WithZone("") == got
			}
			found := false
			for token := range strings.FieldsFuncSeq(first+","+second, func(c rune) bool { return strings.ContainsRune(",;=\"[]% \t\n\v\f\r\u0085\u00a0", c) }) {
				found = found || literal(token)
			}
			if !found {
				t.Errorf("%s %q, %q: client %s stands nowhere in it", header, first, second, got)
			}
		}
	})
}

func TestProxyWarnings(t *testing.T) {
	t.Parallel()
	post := func(s *site, n int, from, forwarded string) {
		for range n {
			header := map[string]string{"Content-Type": mediaJSON}
			if forwarded != "" {
				header["X-Forwarded-For"] = forwarded
			}
			s.do(call{from: from, body: goodJSON, header: header})
		}
	}
	const unlisted, unreadable = "--trusted-proxies", "--client-ip-header"
	for _, row := range []struct {
		name string
		run  func(s *site)
		want map[string]int // lines with that text
	}{
		{"a proxy that is not listed", func(s *site) { post(s, 60, "172.17.0.1:1", "198.51.100.77") }, map[string]int{unlisted: 1, "peer=172.17.0.1": 1, "198.51.100.77": 0}},
		{"the same with a few others", func(s *site) {
			post(s, 2, "203.0.113.1:1", "198.51.100.77")
			post(s, 18, "172.17.0.1:1", "198.51.100.77")
		}, map[string]int{unlisted: 1}},
		{"an odd one first", func(s *site) {
			post(s, 1, "192.168.1.1:1", "198.51.100.77")
			post(s, 39, "172.17.0.1:1", "198.51.100.77")
		}, map[string]int{unlisted: 1, "peer=172.17.0.1": 1}},
		{"too few", func(s *site) { post(s, 19, "172.17.0.1:1", "198.51.100.77") }, map[string]int{unlisted: 0}},
		{"without headers", func(s *site) { post(s, 40, "172.17.0.1:1", "") }, map[string]int{unlisted: 0}},
		{"from a public address", func(s *site) { post(s, 40, "203.0.113.1:1", "198.51.100.77") }, map[string]int{unlisted: 0, "203.0.113.1": 0}},
		{"one of several", func(s *site) {
			for range 10 {
				post(s, 3, "172.17.0.1:1", "198.51.100.77")
				post(s, 1, "203.0.113.1:1", "")
			}
		}, map[string]int{unlisted: 0}},
		{"a listed proxy", func(s *site) { post(s, 40, "10.0.0.1:1", "198.51.100.77") }, map[string]int{unlisted: 0, unreadable: 0}},
		{"a listed proxy without a header", func(s *site) { post(s, 40, "10.0.0.1:1", "") }, map[string]int{unreadable: 1, "proxy=10.0.0.1": 1}},
		{"a listed proxy with garbage", func(s *site) { post(s, 3, "10.0.0.1:1", "198.51.100.77, unknown") }, map[string]int{unreadable: 1, "198.51.100.77": 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{proxies: []string{"10.0.0.0/8"}})
			row.run(s)
			for text, want := range row.want {
				if got := strings.Count(s.log.String(), text); got != want {
					t.Errorf("%q stands in the log %d times, want %d:\n%s", text, got, want, s.log)
				}
			}
		})
	}
}
