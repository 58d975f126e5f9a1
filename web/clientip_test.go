package web

import (
	"net/http"
	"net/http/httptest"
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
	nat64 := quota.NAT64{netip.MustParsePrefix("2001:db8:64::/96")}
	const peer, xff, refused = "10.0.0.1:5000", "X-Forwarded-For", "refused"
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
		{"empty", xff, peer, http.Header{xff: {""}}, refused},
		{"only the other header", xff, peer, http.Header{"Forwarded": {"for=1.1.1.1"}}, "10.0.0.1"},
		{"unknown", xff, peer, http.Header{xff: {"1.1.1.1, unknown"}}, refused},
		{"obfuscated", xff, peer, http.Header{xff: {"1.1.1.1, _hidden"}}, refused},
		{"garbage", xff, peer, http.Header{xff: {"1.1.1.1, 300.1.1.1"}}, refused},
		{"a comma at the end", xff, peer, http.Header{xff: {"203.0.113.5,"}}, "203.0.113.5"},
		{"garbage behind a listed one", xff, peer, http.Header{xff: {"1.1.1.1, x, 10.2.2.2"}}, refused},
		{"with a port", xff, peer, http.Header{xff: {"1.2.3.4:5678"}}, "1.2.3.4"},
		{"with quotes and blanks", xff, peer, http.Header{xff: {` "1.2.3.4" `}}, "1.2.3.4"},
		{"mapped", xff, peer, http.Header{xff: {"::FFFF:1.2.3.4"}}, "1.2.3.4"},
		{"IPv6", xff, peer, http.Header{xff: {"2001:DB8:0::1"}}, "2001:db8::1"},
		{"IPv6 in brackets", xff, peer, http.Header{xff: {"[2001:db8::1]"}}, "2001:db8::1"},
		{"IPv6 with a port", xff, peer, http.Header{xff: {"[2001:db8::1]:443"}}, "2001:db8::1"},
		{"IPv6 with a zone", xff, peer, http.Header{xff: {"fe80::1%eth0"}}, "fe80::1"},
		{"IPv4 in brackets", xff, peer, http.Header{xff: {"[1.2.3.4]"}}, refused},
		{"an open bracket", xff, peer, http.Header{xff: {"[2001:db8::1"}}, refused},
		{"text behind the bracket", xff, peer, http.Header{xff: {"[2001:db8::1]x"}}, refused},
		{"empty elements", xff, peer, http.Header{xff: {",, 203.0.113.5 ,\t,, 10.1.1.1 ,"}}, "203.0.113.5"},
		{"empty lines around", xff, peer, http.Header{xff: {"", "203.0.113.5", " "}}, "203.0.113.5"},
		{"nothing but empty elements", xff, peer, http.Header{xff: {" , ,", ""}}, refused},
		{"an open quote", xff, peer, http.Header{xff: {`1.1.1.1, "203.0.113.5`}}, refused},
		{"a quote alone", xff, peer, http.Header{xff: {`"`}}, refused},
		{"a port that is none", xff, peer, http.Header{xff: {"203.0.113.5:x"}}, refused},
		{"a port of six digits", xff, peer, http.Header{xff: {"203.0.113.5:123456"}}, refused},
		{"a colon without a port", xff, peer, http.Header{xff: {"203.0.113.5:"}}, refused},
		{"brackets and a port that is none", xff, peer, http.Header{xff: {"[2001:db8::1]:x"}}, refused},
		{"brackets and two ports", xff, peer, http.Header{xff: {"[2001:db8::1]:1:2"}}, refused},
		{"leading zeros", xff, peer, http.Header{xff: {"203.0.113.05"}}, refused},
		{"two addresses without a comma", xff, peer, http.Header{xff: {"1.1.1.1 203.0.113.5"}}, refused},
		{"another white space", xff, peer, http.Header{xff: {"\u00a0203.0.113.5"}}, refused},
		{"a huge value", xff, peer, http.Header{xff: {strings.Repeat("1.1.1.1,", 2000) + strings.Repeat("9", 8000)}}, refused},
		{"a huge list", xff, peer, http.Header{xff: {strings.Repeat(",1.1.1.1,", 2000) + "203.0.113.5"}}, "203.0.113.5"},
		{"unspecified", xff, peer, http.Header{xff: {"0.0.0.0"}}, refused},
		{"this network", xff, peer, http.Header{xff: {"1.1.1.1, 0.1.2.3"}}, refused},
		{"unspecified IPv6", xff, peer, http.Header{xff: {"[::]:80"}}, refused},
		{"multicast", xff, peer, http.Header{xff: {"224.0.0.1"}}, refused},
		{"multicast IPv6", xff, peer, http.Header{xff: {"ff02::1"}}, refused},
		{"broadcast, mapped", xff, peer, http.Header{xff: {"::ffff:255.255.255.255"}}, refused},
		{"reserved, through 6to4", xff, peer, http.Header{xff: {"2002:f000:1::1"}}, refused},
		{"a peer that cannot be", xff, "0.0.0.0:5000", nil, refused},
		{"a multicast peer", xff, "[ff02::1]:5000", nil, refused},
		{"6to4", xff, peer, http.Header{xff: {"2002:cb00:7109::1"}}, "203.0.113.9"},
		{"6to4 that holds a listed proxy", xff, peer, http.Header{xff: {"1.1.1.1, 2002:0a00:1::1"}}, "10.0.0.1"},
		{"a 6to4 peer that holds a listed proxy", xff, "[2002:0a00:1::1]:1", http.Header{xff: {"1.1.1.1"}}, "10.0.0.1"},
		{"Teredo", xff, peer, http.Header{xff: {"2001:0:5e0b:be01:0:1:34ff:8ef6"}}, "203.0.113.9"},
		{"the network's NAT64", xff, peer, http.Header{xff: {"2001:db8:64::cb00:7109"}}, "203.0.113.9"},
		{"a peer behind the network's NAT64", xff, "[2001:db8:64::cb00:7109]:1", nil, "203.0.113.9"},
		{"nobody behind the network's NAT64", xff, peer, http.Header{xff: {"2001:db8:64::"}}, refused},
		{"another header", "cf-connecting-ip", peer, http.Header{"Cf-Connecting-Ip": {"203.0.113.5"}, xff: {"1.1.1.1"}}, "203.0.113.5"},
		{"a Unix socket", xff, "@", http.Header{xff: {"1.1.1.1"}}, ""},

		{"Forwarded", "forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1, for=203.0.113.5;proto=https;by=10.0.0.1"}}, "203.0.113.5"},
		{"Forwarded IPv6", "Forwarded", peer, http.Header{"Forwarded": {`proto=https; For="[2001:DB8::1]:4711"`}}, "2001:db8::1"},
		{"Forwarded on two lines", "Forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1", "for=203.0.113.5, for=10.3.3.3"}}, "203.0.113.5"},
		{"Forwarded unknown", "Forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1, for=unknown"}}, refused},
		{"Forwarded without for", "Forwarded", peer, http.Header{"Forwarded": {"for=1.1.1.1, proto=https"}}, refused},
		{"Forwarded with for twice", "Forwarded", peer, http.Header{"Forwarded": {"for=203.0.113.5;for=1.1.1.1"}}, refused},
		{"Forwarded with a host that holds an element", "Forwarded", peer, http.Header{"Forwarded": {`for=203.0.113.5;host="x,for=1.1.1.1;y="`}}, "203.0.113.5"},
		{"Forwarded with an escaped quote", "Forwarded", peer, http.Header{"Forwarded": {`for=203.0.113.5;host="x\",for=1.1.1.1"`}}, "203.0.113.5"},
		{"Forwarded after an open quote", "Forwarded", peer, http.Header{"Forwarded": {`for=", for=203.0.113.5;host="x,for=1.1.1.1;y="`}}, refused},
		{"Forwarded with an open quote", "Forwarded", peer, http.Header{"Forwarded": {`for="1.1.1.1`}}, refused},
		{"Forwarded with an open quote and a backslash", "Forwarded", peer, http.Header{"Forwarded": {`for="1.1.1.1\"`}}, refused},
		{"Forwarded with a quote at the end", "Forwarded", peer, http.Header{"Forwarded": {`for=1.1.1.1"`}}, refused},
		{"Forwarded with text behind the quotes", "Forwarded", peer, http.Header{"Forwarded": {`for="1.1.1.1"x`}}, refused},
		{"Forwarded with an empty for", "Forwarded", peer, http.Header{"Forwarded": {"for=;proto=https"}}, refused},
		{"Forwarded with for twice, once empty", "Forwarded", peer, http.Header{"Forwarded": {"for=;for=1.1.1.1"}}, refused},
		{"Forwarded obfuscated", "Forwarded", peer, http.Header{"Forwarded": {"for=_hidden"}}, refused},
		{"Forwarded unknown, with a port", "Forwarded", peer, http.Header{"Forwarded": {`for="unknown:80"`}}, refused},
		{"Forwarded unknown behind the client", "Forwarded", peer, http.Header{"Forwarded": {"for=unknown, for=203.0.113.5"}}, "203.0.113.5"},
		{"Forwarded with an obfuscated port", "Forwarded", peer, http.Header{"Forwarded": {`for="203.0.113.5:_p-1", for="10.2.2.2:_"`}}, refused},
		{"Forwarded with an obfuscated port behind brackets", "Forwarded", peer, http.Header{"Forwarded": {`for="[2001:db8::1]:_p.1"`}}, "2001:db8::1"},
		{"Forwarded with empty elements", "Forwarded", peer, http.Header{"Forwarded": {"for=203.0.113.5, ,", ",for=10.2.2.2,"}}, "203.0.113.5"},
		{"Forwarded with empty pairs", "Forwarded", peer, http.Header{"Forwarded": {";for=203.0.113.5;;"}}, "203.0.113.5"},
		{"Forwarded with pairs that are empty", "Forwarded", peer, http.Header{"Forwarded": {"for=203.0.113.5, ;"}}, refused},
		{"Forwarded after an open quote on its own line", "Forwarded", peer, http.Header{"Forwarded": {`for="`, "for=203.0.113.5"}}, "203.0.113.5"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: row.peer, Header: row.sent}
			got := newClientFinder(Config{TrustedProxies: proxies, ClientIPHeader: row.header, NAT64: nat64}).find(r)
			switch {
			case row.want == refused:
				if got.fault == nil || got.client != (quota.Client{}) && !got.client.Nobody() || got.sent && got.fault.message.values["Header"] != http.CanonicalHeaderKey(row.header) {
					t.Errorf("client %s, %v, want a refusal", got.client, got.fault)
				}
			case got.fault != nil:
				t.Errorf("refused: %v", got.fault)
			case row.want == "":
				if got.client != (quota.Client{}) {
					t.Errorf("client %s, want none", got.client)
				}
			case got.client != quota.ClientOf(netip.MustParseAddr(row.want)):
				t.Errorf("client %s, want %s", got.client, row.want)
			}
		})
	}
}

// The forms of one address are one client, and a forged header makes no second.
func TestOneClientInManyForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{policy: &quota.Policy{Client: 6}, proxies: []string{"10.0.0.0/8"}})
	for _, form := range []string{"198.51.100.7", "198.51.100.7:99,", "::ffff:198.51.100.7", "9.9.9.9, 64:ff9b::c633:6407", "2002:c633:6407:8::1", "2001:0:5e0b:be01:0:1:39cc:9bf8"} {
		w := s.do(call{from: "10.0.0.1:1", body: goodJSON, header: map[string]string{"Content-Type": mediaJSON, "X-Forwarded-For": form}})
		wantAnswer(t, w, http.StatusCreated, "")
	}
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP"} {
		w := s.do(call{from: "198.51.100.7:1", body: goodJSON, header: map[string]string{"Content-Type": mediaJSON, header: "8.8.8.8"}})
		wantAnswer(t, w, http.StatusTooManyRequests, "")
	}
}

// TestUnreadableHeader: a creation, a change and a look at the allowance are refused,
// and name the header. What needs no client goes on, and so do holders of keys.
func TestUnreadableHeader(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{proxies: []string{"10.0.0.0/8"}, policy: &quota.Policy{Client: 1}})
	h := made(t, s, goodJSON)
	for _, sent := range []string{"unknown", `"203.0.113.5`, ",", "0.0.0.0"} {
		as := func(method, target, body string, header ...string) *httptest.ResponseRecorder {
			shown := map[string]string{"X-Forwarded-For": sent}
			for i := 0; i < len(header); i += 2 {
				shown[header[i]] = header[i+1]
			}
			return s.do(call{method: method, target: target, from: "10.0.0.1:1", body: body, header: shown})
		}
		bearer := "Bearer " + h.token
		for _, w := range []*httptest.ResponseRecorder{
			as("POST", "/api/links", goodJSON, "Content-Type", mediaJSON),
			as("POST", "/api/links", goodJSON, "Content-Type", mediaJSON),
			as("GET", "/api/quota", ""),
			as("PATCH", "/api/links/"+h.slug, `{"max_visits":7}`, "Content-Type", mediaJSON, "Authorization", bearer),
			as("DELETE", "/api/links/"+h.slug, "", "Authorization", bearer),
		} {
			wantAnswer(t, w, http.StatusBadRequest, "The header X-Forwarded-For must name the client")
		}
		wantAnswer(t, as("GET", "/"+h.slug, ""), http.StatusFound, "")
		wantAnswer(t, as("GET", "/", "", "Accept", "text/html"), http.StatusOK, "")
		wantAnswer(t, as("GET", "/api/links/"+h.slug, "", "Authorization", bearer), http.StatusOK, "")
	}
	// The proxy's own allowance is untouched.
	wantAnswer(t, s.do(call{from: "10.0.0.1:1", body: goodJSON, header: map[string]string{"Content-Type": mediaJSON}}), http.StatusCreated, "")
	// Without a proxy, an address that cannot be is refused, too.
	wantAnswer(t, s.do(call{from: "[ff02::1]:1", body: goodJSON, header: map[string]string{"Content-Type": mediaJSON}}), http.StatusBadRequest, "no client can have")
}

// FuzzForwarded: whatever a header holds, the request is refused, or the client is the
// peer, because the header names none but proxies, or an address that stands in it.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{
		"", "1.2.3.4", "1.2.3.4:5, [2001:db8::1]:443", `for="[2001:db8::1]:443";proto=https, for=1.2.3.4`,
		`for="`, `for="\"`, "unknown, _hidden", "::ffff:1.2.3.4", "fe80::1%eth0", "10.0.0.2,10.0.0.3", "[::]:0,]",
		`for="1.1.1.1`, "2002:cb00:7109::1", "0.0.0.0", ", ,", "for=10.0.0.2:_x,;",
	} {
		f.Add(seed, seed)
	}
	f.Add("::", "::1% 0") // a zone of a blank and a digit
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	proxy := quota.ClientOf(netip.MustParseAddr("10.0.0.1"))
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
			r := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{header: {first, second}}}
			got := newClientFinder(Config{TrustedProxies: proxies, ClientIPHeader: header}).find(r)
			if got.fault != nil {
				continue
			}
			if got.client.Nobody() || got.client == (quota.Client{}) {
				t.Errorf("%s %q, %q: client %s is nobody", header, first, second, got.client)
			}
			literal := func(text string) bool {
				addr, err := netip.ParseAddr(text)
				if err != nil { // perhaps an IPv4 address with a port
					host, _, _ := strings.Cut(text, ":")
					addr, err = netip.ParseAddr(host)
				}
				if err != nil {
					return false
				}
				return quota.ClientOf(addr) == got.client || got.client == proxy && proxies[0].Contains(addr.Unmap())
			}
			found := false
			for token := range strings.FieldsFuncSeq(first+","+second, func(c rune) bool { return strings.ContainsRune(",;=\"[]% \t\n\v\f\r\u0085\u00a0", c) }) {
				found = found || literal(token)
			}
			if !found {
				t.Errorf("%s %q, %q: client %s stands nowhere in it", header, first, second, got.client)
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
		{"a listed proxy with garbage", func(s *site) { post(s, 3, "10.0.0.1:1", "198.51.100.77, unknown") }, map[string]int{unreadable: 1, "was refused": 1, "198.51.100.77": 0}},
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
