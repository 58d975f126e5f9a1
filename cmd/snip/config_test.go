package main

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"snip/quota"
)

// configOf reads a command line and an environment as run does.
func configOf(t *testing.T, environ []string, args ...string) (config, error) {
	t.Helper()
	a, err := parseCommandLine(args, environ, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return readConfig(a.settings)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := configOf(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.listen != ":8080" || c.store.file != "snip.db" || c.contact != "" || c.proxies != nil ||
		c.header != "X-Forwarded-For" || c.origins != nil || c.redirect != 302 || c.keysOnly {
		t.Errorf("defaults: %+v", c)
	}
	if got := c.publicURL.String(); got != "http://localhost:8080" {
		t.Errorf("public URL %q", got)
	}
	wantThrottle := quota.ThrottleConfig{Every: 10 * time.Second, Burst: 3, Clients: 65536}
	if diff := cmp.Diff(wantThrottle, c.throttle, cmpopts.IgnoreFields(quota.ThrottleConfig{}, "Now")); diff != "" {
		t.Errorf("throttle (-want +got):\n%s", diff)
	}
	wantPolicy := quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}
	if diff := cmp.Diff(wantPolicy, c.policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

func TestFlagWinsOverVariable(t *testing.T) {
	t.Parallel()
	c, err := configOf(t, []string{"SNIP_QUOTA_CLIENT=7", "SNIP_STORE=env.db", "SNIP_CONTACT=", "SNIP_ALLOW_SHORTENERS=true"},
		"--store", "flag.db", "serve")
	if err != nil {
		t.Fatal(err)
	}
	if c.policy.Client != 7 || c.store.file != "flag.db" || c.contact != "" || !c.shorteners {
		t.Errorf("client %d, store %q, contact %q, shorteners %v", c.policy.Client, c.store, c.contact, c.shorteners)
	}
}

func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	a, err := parseCommandLine(nil, []string{"SNIP_QUOTA_CLIENTS=7", "SNIP_STORE=x", "PATH=/bin", "SNIP_A=1"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"SNIP_A", "SNIP_QUOTA_CLIENTS"}, a.unknown); diff != "" {
		t.Errorf("unknown variables (-want +got):\n%s", diff)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args string
		want string // part of the one problem; empty means that it is sound
	}{
		{"--listen=127.0.0.1:0", ""},
		{"--listen=[::1]:8080", ""},
		{"--listen=:65536", "a port from 0 to 65535"},
		{"--listen=:http", "a port from 0 to 65535"},
		{"--listen=::1:8080", "a port from 0 to 65535"},
		{"--public-url=https://https://s.example", "the scheme is there twice; write it once"},
		{"--public-url=HTTP://HTTPS://s.example/s", "the scheme is there twice"},
		{"--public-url=https://https//s.example", "the scheme is there twice"},
		{"--public-url=https://1.2.3.4.5", "it has a host that ends in a number and yet is no IPv4 address"},
		{"--public-url=https://ftp://s.example", "the scheme is there twice"},
		{"--contact=https://https://s.example", "the scheme is there twice"},
		{"--alert-webhook=https://http://hooks.example/x", "the scheme is there twice"},
		{"--reputation-url=https://https://webrisk.example/v1", "the scheme is there twice"},
		{"--cors-origins=https://https://app.example", "has its scheme twice"},
		{"--admin-url=https://https://admin.example", "has its scheme twice"},
		{"--reserved-slugs=jobs,a b", `"a b" could be none`},
		{"--reserved-slugs=jobs,", "such as pricing,jobs"},
		{"--store=", "a postgres:// URL is needed"},
		{"--store=mysql://db/snip", "a postgres:// URL is needed"},
		{"--store=postgres://db/snip", "--admin-token or --admin-token-file is needed"},
		{"--store=postgres://snip:se cret@db/snip", "percent-encoded"},
		{"--store=postgres://db:99999/snip", "invalid port"},
		{"--store=postgres://db/snip?sslmode=maybe", "sslmode"},
		{"--public-url=https://s.example/", ""},
		{"--public-url=https://s.example:8443/go/to/", ""},
		{"--public-url=https://münchen.example", ""},
		{"--public-url=s.example", "http or https"},
		{"--public-url=https:///x", "http or https"},
		{"--public-url=https://s.example/?", "query or fragment"},
		{"--public-url=https://s.example/#", "query or fragment"},
		{"--public-url=https://me:pw@s.example", "user name"},
		{"--public-url=https://s.example:0", "port"},
		{"--public-url=https://s.example:", "port"},
		{"--public-url=https://s.example:70000", "port"},
		{"--public-url=https://s.example/a//b", "path prefix"},
		{"--public-url=https://s.example/../b", "path prefix"},
		{"--public-url=https://s.example/a%2Fb", "path prefix"},
		{"--contact=abuse@s.example", ""},
		{"--contact=mailto:abuse@s.example", ""},
		{"--contact=https://s.example/report", ""},
		{"--contact=Me <abuse@s.example>", "mail address"},
		{"--contact=javascript:alert(1)", "mail address"},
		{"--trusted-proxies=10.0.0.0/8, 2001:db8::/32,::1", ""},
		{"--trusted-proxies=10.0.0.0/8,", "neither an address"},
		{"--trusted-proxies=proxy.internal", "neither an address"},
		{"--trusted-proxies=fe80::1%eth0", "neither an address"},
		{"--trusted-proxies=0.0.0.0/0", "any address as its own"},
		{"--trusted-proxies=::/0", "any address as its own"},
		{"--trusted-proxies=::ffff:10.0.0.0/104", "neither an address"},
		{"--admin-url=https://admin.example/", ""},
		{"--admin-url=http://192.0.2.1:8081", ""},
		{"--admin-url=admin.example", "the URL is no origin"},
		{"--admin-url=https://admin.example/snip", "https://admin.example is meant"},
		{"--cors-origins=https://app.example, http://localhost:3000", ""},
		{"--cors-origins=*", "name each origin"},
		{"--cors-origins=https://*.app.example", "name each origin"},
		{"--cors-origins=null", "sandboxed frame"},
		{"--cors-origins=https://app.example,", "is no origin"},
		{"--cors-origins=https://app.example/", "https://app.example is meant"},
		{"--cors-origins=app.example,https://a.example,ftp://b.example", `"app.example" is no origin: http or https and a host, such as https://app.example or http://localhost:3000, are needed; "ftp://b.example" is no origin`},
		{"--cors-origins=https://me:secret@app.example", `"https://...@app.example" must not contain a user name`},
		{"--nat64-prefixes=2001:db8:64::/96, 2001:db8:100::/40", ""},
		{"--nat64-prefixes=2001:db8:64::1", "is no prefix"},
		{"--nat64-prefixes=2001:db8:64::/80", "must be an IPv6 prefix of 32"},
		{"--nat64-prefixes=2001:db8:64::/96,", "is no prefix"},
		{"--client-ip-header=cf-connecting-ip", ""},
		{"--client-ip-header=", "name of a header"},
		{"--redirect-status=307", ""},
		{"--redirect-status=303", "301, 302, 307 or 308"},
		{"--throttle-every=0", ""},
		{"--throttle-every=1500ms", ""},
		{"--throttle-every=10", "such as 10s"},
		{"--throttle-every=-1s", "such as 10s"},
		{"--throttle-every=25h", "up to 24h"},
		{"--throttle-burst=0", "from 1 to"},
		{"--throttle-clients=16777217", "from 1 to 16777216"},
		{"--quota-client=0", ""},
		{"--quota-service=0", ""},
		{"--quota-client=50.0", "at least 0"},
		{"--quota-client=99999999999999999999", "at least 0"},
		{"--quota-client=251", "quota client 251 must not exceed quota network 250"},
		{"--quota-newcomers=751", "quota network 250 + newcomers 751 must not exceed quota service 1000"},
		{"--allow-private-destinations", ""},
		{"--allow-private-destinations=false", ""},
		{"--allow-shorteners=maybe", "true or false"},
	} {
		_, err := configOf(t, nil, row.args)
		wrong, _ := errors.AsType[*settingsError](err)
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%s: %v", row.args, err)
		case row.want != "" && (wrong == nil || len(wrong.problems) != 1 || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got %v, want one problem with %q", row.args, err, row.want)
		}
	}
}

// No part of a database's password is shown, wherever it stands in its URL, and
// whether that can be read or not.
func TestPasswordOfTheStoreIsNotShown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ url, want string }{
		{"postgres://snip:secret@db/snip", "postgres://db/snip"},
		{"postgres://snip:secret@a:5432,b:5433/snip?target_session_attrs=read-write", "postgres://a:5432,b:5433/snip"},
		{"postgres://db/snip?user=snip&password=secret", "postgres://db/snip"},
		{"postgres:///snip?host=/run/postgresql&password=secret", "postgres:///snip"},
		// It stands as it is where it had to be percent-encoded.
		{"postgres://snip:12/secret@db/snip", "postgres://..."},
		{"postgres://snip:12?secret@db/snip", "postgres://..."},
		{"postgres://snip:12#secret@db/snip", "postgres://..."},
		{"postgres://snip:12@12/secret@db/snip", "postgres://..."},
		{"postgres://snip:secret@12:secret@db/snip", "postgres://..."},
		{"postgres://snip:secret/12@db/snip", "postgres://..."},
		{"postgres://snip:%secret@db/snip", "postgres://..."},
		{"postgres://snip:se cret@db/snip", "postgres://..."},
	} {
		if got := (location{database: row.url}).String(); got != row.want {
			t.Errorf("%s is shown as %s, want %s", row.url, got, row.want)
		}
		for _, spoilt := range []string{row.url, row.url + "&sslmode=maybe", row.url + "?sslmode=maybe"} {
			_, err := configOf(t, nil, "--store", spoilt)
			for _, part := range []string{"secret", "12", "cret"} {
				if err == nil || strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v", spoilt, err)
				}
			}
		}
	}
	for _, wrong := range []string{
		"postgres:/snip:secret@db/snip", "postgresql:snip:secret@db/snip", "host=db user=snip password=secret", "user=snip password=secret",
		"postgres://db:1234/secret@db:5432/snip",
	} {
		if _, err := configOf(t, nil, "--store", wrong); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestReadValues(t *testing.T) {
	t.Parallel()
	c, err := configOf(t, nil, "--public-url=https://s.example/go/", "--trusted-proxies= 172.17.0.1 ,::ffff:10.0.0.1,10.1.0.0/16",
		"--client-ip-header=x-real-ip", "--cors-origins=HTTPS://App.Example:443, http://localhost:3000")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.publicURL.String(); got != "https://s.example/go" {
		t.Errorf("public URL %q", got)
	}
	if diff := cmp.Diff([]string{"https://app.example", "http://localhost:3000"}, c.origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if c.header != "X-Real-Ip" {
		t.Errorf("header %q", c.header)
	}
	want := []netip.Prefix{netip.MustParsePrefix("172.17.0.1/32"), netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.1.0.0/16")}
	if diff := cmp.Diff(want, c.proxies, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("proxies (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want []string // a word of each warning
	}{
		{[]string{"--listen=127.0.0.1:8080"}, nil},
		{[]string{"--listen=localhost:8080"}, nil},
		{[]string{"--listen=:8080"}, []string{"--public-url"}},
		{[]string{"--listen=192.0.2.1:8080"}, []string{"--public-url"}},
		{[]string{"--public-url=https://s.example"}, nil},
		{[]string{"--public-url=http://localhost:8080"}, nil}, // said on purpose
		{[]string{"--listen=[::1]:1", "--client-ip-header=X-Real-Ip"}, []string{"--client-ip-header"}},
		{[]string{"--listen=[::1]:1", "--client-ip-header=X-Real-Ip", "--trusted-proxies=::1"}, nil},
		{[]string{"--listen=[::1]:1", "--admin-listen=:8081"}, []string{"--admin-listen"}},
	} {
		c, err := configOf(t, nil, row.args...)
		if err != nil {
			t.Errorf("%v: %v", row.args, err)
			continue
		}
		if len(c.warnings) != len(row.want) {
			t.Errorf("%v: warnings %q, want %d", row.args, c.warnings, len(row.want))
			continue
		}
		for i, word := range row.want {
			if !strings.Contains(c.warnings[i], word) {
				t.Errorf("%v: warning %q lacks %q", row.args, c.warnings[i], word)
			}
		}
	}
}

// No text may bring the readers down, or be taken for sound and then fail to
// mean anything.
func FuzzReadConfig(f *testing.F) {
	f.Add("public-url", "https://s.example/%zz")
	f.Add("trusted-proxies", "::ffff:0:0/96,fe80::%1/64")
	f.Add("listen", "[::1%lo]:1")
	f.Add("cors-origins", "https://[::FFFF:1]:443,http://0x7f.1:080")
	f.Add("contact", "<a@b>")
	f.Add("throttle-every", "1e9h")
	f.Add("store", "@://")
	f.Add("store", "postgres://u:p@a,b:5433/db?sslmode=disable")
	a, err := parseCommandLine(nil, nil, io.Discard)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, flag, text string) {
		given := settings{}
		for name, s := range a.settings {
			given[name] = s
		}
		given[flag] = setting{text: text, given: true}
		c, err := readConfig(given)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "--") {
				t.Errorf("%s %q: %v names no flag", flag, text, err)
			}
			return
		}
		if c.publicURL.Host == "" || strings.HasSuffix(c.publicURL.Path, "/") || c.policy.Validate() != nil ||
			c.throttle.Every < 0 || c.throttle.Burst < 1 || c.throttle.Clients < 1 {
			t.Errorf("%s %q was read as %+v", flag, text, c)
		}
		for _, origin := range c.origins {
			if again, err := parseOrigins(origin); err != nil || !slices.Equal(again, []string{origin}) {
				t.Errorf("%s %q lists %q, which is read as %q, %v", flag, text, origin, again, err)
			}
		}
		for _, p := range c.proxies {
			if !p.IsValid() || p.Bits() == 0 || p != p.Masked() {
				t.Errorf("%s %q lists %v", flag, text, p)
			}
		}
	})
}
