package shortener_test

import (
	"strings"
	"testing"

	"snip/shortener"
)

func TestPlainHost(t *testing.T) {
	t.Parallel()
	for destination, want := range map[string]shortener.PlainHost{
		"https://example.org":                        {Name: "example.org"},
		"HTTPS://Example.ORG:8443/Path?q#f":          {Name: "example.org"},
		"http://my_host.example./x":                  {Name: "my_host.example."},
		"https://münchen.example/ß":                  {Name: "münchen.example", Punycode: "xn--mnchen-3ya.example"},
		"https://MÜNCHEN.example":                    {Name: "münchen.example", Punycode: "xn--mnchen-3ya.example"},
		"https://XN--mnchen-3ya.example/":            {Name: "münchen.example", Punycode: "xn--mnchen-3ya.example"},
		"https://한국.example":                         {Name: "한국.example", Punycode: "xn--3e0b707e.example"},
		"https://例え-テストa1。example":                   {Name: "例え-テストa1.example", Punycode: "xn---a1-763boxncp9014d.example"},
		"https://пример.com":                         {Name: "пример.com", Punycode: "xn--e1afmkfd.com"},
		"https://аррӏе.example/login":                {Name: "аррӏе.example", Punycode: "xn--80ak6aa92e.example"},
		"https://аpple.example":                      {Name: "аpple.example", Punycode: "xn--pple-43d.example", Mixed: true},
		"https://xn--pple-43d.example":               {Name: "аpple.example", Punycode: "xn--pple-43d.example", Mixed: true},
		"https://www.gооgle.example":                 {Name: "www.gооgle.example", Punycode: "www.xn--ggle-55da.example", Mixed: true},
		"https://ひら한.example":                        {Name: "ひら한.example", Punycode: "xn--y9j3bu955e.example", Mixed: true},
		"http://134744072/":                          {Name: "8.8.8.8"},
		"http://0x08.8.010.8/":                       {Name: "8.8.8.8"},
		"http://[2001:DB8:0:0::1]:8080/":             {Name: "[2001:db8::1]"},
		"not a destination":                          {},
		"https://a b/":                               {},
		"https://" + strings.Repeat("ü", 2000) + "/": {},
	} {
		if got := shortener.PlainHostOf(destination); got != want {
			t.Errorf("%.80s:\n got %+v\nwant %+v", destination, got, want)
		}
	}
}
