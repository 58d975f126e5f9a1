package foreign

import (
	"net/http/httptest"
	"testing"
)

// request is a request's host and the headers of a browser, in pairs.
type request struct {
	host    string
	headers []string
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	local := Guard{Origins: []string{"http://localhost:8080", "https://app.example"}, Hosts: []string{"localhost:8080"}, Loopback: true}
	public := Guard{Origins: []string{"https://s.example", "https://app.example"}, Hosts: []string{"s.example"}}
	address := Guard{Origins: []string{"http://[2001:db8::1]:8080"}, Hosts: []string{"[2001:DB8:0::1]:8080"}}
	operator := Guard{Origins: []string{"https://admin.example"}, Hosts: []string{"admin.example", "snip.internal:8081"}, Loopback: true, Addresses: true}
	const (
		same = "same-origin"
		site = "Sec-Fetch-Site"
	)
	for name, row := range map[string]struct {
		guard   Guard
		request request
		refused bool
	}{
		"a program":                             {public, request{"evil.example", nil}, false},
		"a program with other headers":          {public, request{"evil.example", []string{"X-Forwarded-Host", "x", "Sec-Fetch-Mode", "cors"}}, false},
		"the page":                              {public, request{"s.example", []string{"Origin", "https://s.example", site, same}}, false},
		"the page without Sec-Fetch-Site":       {public, request{"s.example", []string{"Origin", "https://s.example"}}, false},
		"the page, Host changed":                {public, request{"snip", []string{"Origin", "https://s.example", site, same}}, false},
		"the page, Host changed, old browser":   {public, request{"127.0.0.1:8080", []string{"Origin", "https://s.example"}}, false},
		"the page, Referer alone":               {public, request{"snip", []string{"Referer", "https://s.example/x?y#z"}}, false},
		"the page on another port":              {public, request{"s.example:8443", []string{"Origin", "https://s.example:8443", site, same}}, false},
		"the page without TLS":                  {public, request{"s.example", []string{"Origin", "http://s.example", site, same}}, false},
		"the page without TLS, old browser":     {public, request{"s.example", []string{"Origin", "http://s.example"}}, false},
		"another scheme from elsewhere":         {public, request{"snip", []string{"Origin", "http://s.example"}}, true},
		"another port from elsewhere":           {public, request{"s.example", []string{"Origin", "https://s.example:444"}}, true},
		"a name with a dot at its end":          {public, request{"S.Example.", []string{"Origin", "https://s.example.", site, same}}, false},
		"typed in by the visitor":               {public, request{"s.example", []string{site, "none"}}, false},
		"typed in, to another name":             {public, request{"evil.example", []string{site, "none"}}, true},
		"a page that does not say":              {public, request{"s.example", []string{"Origin", "null", site, same}}, false},
		"a page that does not say, elsewhere":   {public, request{"evil.example", []string{"Origin", "null", site, same}}, true},
		"a frame that does not say":             {public, request{"s.example", []string{"Origin", "null"}}, true},
		"a page without Referer":                {public, request{"s.example", []string{"Referer", ""}}, false},
		"a page without Referer, elsewhere":     {public, request{"evil.example", []string{"Referer", ""}}, true},
		"a listed page":                         {public, request{"s.example", []string{"Origin", "https://app.example", site, "cross-site"}}, false},
		"a listed page, rebound":                {public, request{"app.example", []string{"Origin", "http://app.example"}}, true},
		"rebound":                               {public, request{"evil.example", []string{"Origin", "http://evil.example"}}, true},
		"rebound, as in a new browser":          {public, request{"evil.example", []string{"Origin", "http://evil.example", site, same}}, true},
		"rebound, Sec-Fetch-Site alone":         {public, request{"evil.example", []string{site, same}}, true},
		"rebound, Referer alone":                {public, request{"evil.example", []string{"Referer", "http://evil.example/"}}, true},
		"rebound, with our name in a header":    {public, request{"evil.example", []string{"Origin", "http://evil.example", "X-Forwarded-Host", "s.example", "Forwarded", "host=s.example"}}, true},
		"rebound, with our name in the path":    {public, request{"evil.example", []string{"Referer", "http://evil.example/https://s.example"}}, true},
		"rebound, Referer of ours":              {public, request{"evil.example", []string{"Origin", "http://evil.example", "Referer", "https://s.example/"}}, true},
		"rebound, no name at all":               {public, request{"", []string{site, same}}, true},
		"a name above":                          {public, request{"example", []string{"Origin", "http://example"}}, true},
		"a name below":                          {public, request{"a.s.example", []string{"Origin", "http://a.s.example"}}, true},
		"a name that ends so":                   {public, request{"evils.example", []string{"Origin", "http://evils.example"}}, true},
		"another site":                          {public, request{"s.example", []string{"Origin", "https://evil.example", site, "cross-site"}}, true},
		"another site, old browser":             {public, request{"s.example", []string{"Origin", "https://evil.example"}}, true},
		"another site, Referer alone":           {public, request{"s.example", []string{"Referer", "https://evil.example/s.example"}}, true},
		"a site next door":                      {public, request{"s.example", []string{"Origin", "https://x.s.example", site, "same-site"}}, true},
		"our name before an at sign":            {public, request{"s.example", []string{"Origin", "https://s.example@evil.example"}}, true},
		"an address, of no one's":               {public, request{"192.0.2.1", []string{"Origin", "http://192.0.2.1", site, same}}, true},
		"loopback, of a public service":         {public, request{"localhost:8080", []string{"Origin", "http://localhost:8080", site, same}}, true},
		"two origins":                           {public, request{"s.example", []string{"Origin", "https://s.example", "Origin", "https://s.example"}}, true},
		"two sites":                             {public, request{"s.example", []string{site, same, site, "cross-site"}}, true},
		"an unknown site":                       {public, request{"s.example", []string{site, "SAME-ORIGIN"}}, true},
		"an empty site":                         {public, request{"s.example", []string{site, ""}}, true},
		"an empty origin":                       {public, request{"s.example", []string{"Origin", ""}}, true},
		"no web page":                           {public, request{"s.example", []string{"Referer", "about:blank"}}, true},
		"an extension":                          {public, request{"s.example", []string{"Origin", "chrome-extension://abc", site, "none"}}, true},
		"localhost":                             {local, request{"localhost:8080", []string{"Origin", "http://localhost:8080", site, same}}, false},
		"another port of localhost":             {local, request{"localhost:9999", []string{"Origin", "http://localhost:9999", site, same}}, false},
		"another port, old browser":             {local, request{"LocalHost:9999", []string{"Origin", "http://localhost:9999"}}, false},
		"below localhost":                       {local, request{"snip.localhost", []string{"Origin", "http://snip.localhost", site, same}}, false},
		"127.0.0.1":                             {local, request{"127.0.0.1:8080", []string{"Origin", "http://127.0.0.1:8080", site, same}}, false},
		"127.8.9.1 without a port":              {local, request{"127.8.9.1", []string{"Origin", "http://127.8.9.1"}}, false},
		"::1":                                   {local, request{"[::1]:8080", []string{"Origin", "http://[::1]:8080"}}, false},
		"a mapped address":                      {local, request{"[::ffff:7f00:1]:8080", []string{"Origin", "http://[::ffff:7f00:1]:8080"}}, false},
		"another program on loopback":           {local, request{"localhost:8080", []string{"Origin", "http://localhost:3000", site, "same-site"}}, true},
		"another program, old browser":          {local, request{"localhost:8080", []string{"Origin", "http://localhost:3000"}}, true},
		"another program's address":             {local, request{"localhost:8080", []string{"Origin", "http://127.0.0.1:8080", site, "cross-site"}}, true},
		"rebound to loopback":                   {local, request{"evil.example:8080", []string{"Origin", "http://evil.example:8080"}}, true},
		"rebound, named like loopback":          {local, request{"127.0.0.1.nip.example", []string{"Origin", "http://127.0.0.1.nip.example"}}, true},
		"rebound, named like localhost":         {local, request{"localhost.evil.example", []string{"Origin", "http://localhost.evil.example"}}, true},
		"rebound, begins like localhost":        {local, request{"notlocalhost", []string{"Origin", "http://notlocalhost"}}, true},
		"every address":                         {local, request{"0.0.0.0:8080", []string{"Origin", "http://0.0.0.0:8080"}}, true},
		"a machine next door":                   {local, request{"192.168.1.5:8080", []string{"Origin", "http://192.168.1.5:8080"}}, true},
		"a public address":                      {address, request{"[2001:db8::1]:8080", []string{"Origin", "http://[2001:db8::1]:8080", site, same}}, false},
		"a public address, another port":        {address, request{"[2001:db8::1]", []string{"Origin", "http://[2001:db8::1]"}}, false},
		"a public address, another":             {address, request{"[2001:db8::2]", []string{"Origin", "http://[2001:db8::2]"}}, true},
		"the operator, through a tunnel":        {operator, request{"localhost:9999", []string{"Origin", "http://localhost:9999", site, same}}, false},
		"the operator, at an address":           {operator, request{"192.168.1.5:8081", []string{"Origin", "http://192.168.1.5:8081"}}, false},
		"the operator, at an IPv6 address":      {operator, request{"[fd00::5]:8081", []string{"Origin", "http://[fd00::5]:8081"}}, false},
		"the operator, where it listens":        {operator, request{"snip.internal:8081", []string{"Origin", "http://snip.internal:8081"}}, false},
		"the operator, behind a proxy":          {operator, request{"127.0.0.1:8081", []string{"Origin", "https://admin.example", site, same}}, false},
		"the operator, rebound":                 {operator, request{"evil.example:8081", []string{"Origin", "http://evil.example:8081"}}, true},
		"the operator, rebound, in a new one":   {operator, request{"evil.example:8081", []string{"Origin", "http://evil.example:8081", site, same}}, true},
		"the operator, from an address to them": {operator, request{"192.168.1.5:8081", []string{"Origin", "http://192.168.1.6:8081"}}, true},
	} {
		for method, mayChange := range map[string]bool{"POST": true, "PATCH": true, "DELETE": true, "PUT": true, "GET": false, "HEAD": false, "OPTIONS": false} {
			r := httptest.NewRequest(method, "/", nil)
			r.Host = row.request.host
			for i := 0; i < len(row.request.headers); i += 2 {
				r.Header.Add(row.request.headers[i], row.request.headers[i+1])
			}
			if got := row.guard.Refuses(r); got != (row.refused && mayChange) {
				t.Errorf("%s, %s: refused %t", name, method, got)
			}
		}
	}
}
