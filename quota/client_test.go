package quota_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"snip/quota"
)

// client is the one behind an address that the test knows to be valid.
func client(t testing.TB, addr string) quota.Client {
	t.Helper()
	a, err := netip.ParseAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	return quota.ClientOf(a)
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, addr, client, network string }{
		{"IPv4", "1.2.3.4", "1.2.3.4/32", "1.2.3.0/24"},
		{"mapped IPv4", "::ffff:1.2.3.4", "1.2.3.4/32", "1.2.3.0/24"},
		{"mapped IPv4 in hex", "::ffff:102:304", "1.2.3.4/32", "1.2.3.0/24"},
		{"mapped IPv4 with a zone", "::ffff:1.2.3.4%eth0", "1.2.3.4/32", "1.2.3.0/24"},
		{"another mapped IPv4 is another client", "::ffff:5.6.7.8", "5.6.7.8/32", "5.6.7.0/24"},
		{"NAT64", "64:ff9b::1.2.3.4", "1.2.3.4/32", "1.2.3.0/24"},
		{"NAT64 in hex", "64:ff9b::102:304", "1.2.3.4/32", "1.2.3.0/24"},
		{"NAT64 with a zone", "64:ff9b::1.2.3.4%eth0", "1.2.3.4/32", "1.2.3.0/24"},
		{"beyond the NAT64 prefix", "64:ff9b:0:0:0:1::1", "64:ff9b::/64", "64:ff9b::/48"},
		{"the local NAT64 prefix is a network's own", "64:ff9b:1::1.2.3.4", "64:ff9b:1::/64", "64:ff9b:1::/48"},
		{"IPv4-compatible", "::1.2.3.4", "1.2.3.4/32", "1.2.3.0/24"},
		{"translated", "::ffff:0:1.2.3.4", "1.2.3.4/32", "1.2.3.0/24"},
		{"6to4", "2002:102:304::1", "1.2.3.4/32", "1.2.3.0/24"},
		{"6to4, another of its networks", "2002:102:304:77::9%eth0", "1.2.3.4/32", "1.2.3.0/24"},
		{"Teredo", "2001:0:5e0b:be01:0:1:fefd:fcfb", "1.2.3.4/32", "1.2.3.0/24"},
		{"beyond Teredo", "2001:1::fefd:fcfb", "2001:1::/64", "2001:1::/48"},
		{"loopback", "::1", "::/64", "::/48"},
		{"IPv6", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48"},
		{"IPv6 in capitals, written out", "2001:DB8:0001:0002::1", "2001:db8:1:2::/64", "2001:db8:1::/48"},
		{"a zone", "fe80::1%eth0", "fe80::/64", "fe80::/48"},
		{"another zone", "fe80::1%eth1", "fe80::/64", "fe80::/48"},
	}
	byText := map[string]quota.Client{}
	for _, row := range rows {
		c := client(t, row.addr)
		if c.String() != row.client || c.Network().String() != row.network {
			t.Errorf("%s: %s is %s in %s, want %s in %s", row.name, row.addr, c, c.Network(), row.client, row.network)
		}
		if same, seen := byText[row.client]; seen && same != c {
			t.Errorf("%s: %s prints as another does but is not equal to it", row.name, row.addr)
		}
		byText[row.client] = c
	}
}

// Addresses from which nothing comes are nobody's, in every form.
func TestNobody(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"0.0.0.0", "0.1.2.3", "::", "::0.0.0.7", "::ffff:0.0.0.0", "64:ff9b::", "2002::1", "2001:0:5e0b:be01:0:1:ffff:ffff",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::ffff:255.255.255.255", "2002:e000:1::1", "ff02::1", "ff0e::1%eth0",
	} {
		if !client(t, addr).Nobody() {
			t.Errorf("%s is somebody: %s", addr, client(t, addr))
		}
		if scope, err := quota.NAT64(nil).ParseScope(addr); err == nil || !strings.Contains(err.Error(), "no client's") {
			t.Errorf("an operator may name %s: %v, %v", addr, scope, err)
		}
	}
	for _, addr := range []string{"1.0.0.0", "127.0.0.1", "::1", "223.255.255.255", "10.0.0.1", "169.254.1.1", "fe80::1", "fc00::1", "2001:db8::1"} {
		if client(t, addr).Nobody() {
			t.Errorf("%s is nobody", addr)
		}
	}
	if (quota.Client{}).Nobody() || quota.ClientOfKey(quota.Key{ID: 1, Limit: 1}).Nobody() {
		t.Error("a client without an address is judged by one")
	}
}

// The prefixes and addresses of RFC 6052, section 2.4.
func TestNAT64(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ prefix, addr string }{
		{"2001:db8::/32", "2001:db8:c000:221::"},
		{"2001:db8:100::/40", "2001:db8:1c0:2:21::"},
		{"2001:db8:122::/48", "2001:db8:122:c000:2:2100::"},
		{"2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"},
		{"2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"},
		{"2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"},
	} {
		n := quota.NAT64{netip.MustParsePrefix(row.prefix)}
		if err := n.Validate(); err != nil {
			t.Errorf("%s: %v", row.prefix, err)
		}
		addr := netip.MustParseAddr(row.addr)
		if got := n.ClientOf(addr); got != client(t, "192.0.2.33") {
			t.Errorf("%s of %s is %s", row.addr, row.prefix, got)
		}
		if scope, err := n.ParseScope(row.addr); err != nil || scope.Prefix.String() != "192.0.2.33/32" {
			t.Errorf("an operator names %s: %v, %v", row.addr, scope, err)
		}
		if got := n.ClientOf(netip.MustParseAddr("2001:db9::1")); got != client(t, "2001:db9::1") {
			t.Errorf("an address beyond %s is %s", row.prefix, got)
		}
		if got := quota.NAT64(nil).ClientOf(addr); got != client(t, row.addr) {
			t.Errorf("without %s, %s is %s", row.prefix, row.addr, got)
		}
	}
	for _, row := range []struct{ prefixes, says string }{
		{"2001:db8::/33", "must be an IPv6 prefix of 32"},
		{"2001:db8::/128", "must be an IPv6 prefix of 32"},
		{"::/0", "must be an IPv6 prefix of 32"},
		{"192.0.2.0/24", "must be an IPv6 prefix of 32"},
		{"10.0.0.0/32", "must be an IPv6 prefix of 32"},
		{"::ffff:10.0.0.0/96", "must be an IPv6 prefix of 32"},
		{"2001:db8::1/96", "2001:db8::/96 is meant"},
		{"2001:db8:0:0:ff00::/96", "zeros in its bits 64 to 71"},
		{"2001:db8::/32 2001:db8:1::/96", "overlaps"},
		{"2001:db8::/96 2001:db8::/96", "overlaps"},
	} {
		var n quota.NAT64
		for text := range strings.FieldsSeq(row.prefixes) {
			n = append(n, netip.MustParsePrefix(text))
		}
		if err := n.Validate(); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.prefixes, err, row.says)
		}
	}
}

// With a port or without, the address is the client.
func TestClientOfAddrPort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ peer, addr string }{
		{"1.2.3.4:5678", "1.2.3.4"},
		{"[::ffff:1.2.3.4]:5678", "1.2.3.4"},
		{"[2001:db8::1]:443", "2001:db8::1"},
		{"[2001:DB8:0::1]:443", "2001:db8::ffff"},
	} {
		if got := quota.ClientOf(netip.MustParseAddrPort(row.peer).Addr()); got != client(t, row.addr) {
			t.Errorf("%s is %s, want %s", row.peer, got, row.addr)
		}
	}
}

func TestClientsOfOneBlock(t *testing.T) {
	t.Parallel()
	one := map[quota.Client]bool{}
	for i := range 1000 {
		one[client(t, fmt.Sprintf("2001:db8::%x:%x", i*61, i))] = true
	}
	if len(one) != 1 {
		t.Errorf("1,000 addresses of a /64 are %d clients, want 1", len(one))
	}
	clients, networks := map[quota.Client]bool{}, map[netip.Prefix]bool{}
	for i := range 256 {
		c := client(t, fmt.Sprintf("192.0.2.%d", i))
		clients[c], networks[c.Network()] = true, true
	}
	if len(clients) != 256 || len(networks) != 1 {
		t.Errorf("a /24 is %d clients in %d networks, want 256 in 1", len(clients), len(networks))
	}
	if networks[client(t, "192.0.3.0").Network()] {
		t.Error("the next /24 is the same network")
	}
}

func TestClientZero(t *testing.T) {
	t.Parallel()
	var zero quota.Client
	if got := quota.ClientOf(netip.Addr{}); got != zero {
		t.Errorf("no address is %v, want the zero client", got)
	}
	if zero == client(t, "0.0.0.0") || zero == client(t, "::") {
		t.Error("the zero client is somebody")
	}
	if zero.Network().IsValid() {
		t.Errorf("the zero client is in %v", zero.Network())
	}
}

func TestSubject(t *testing.T) {
	t.Parallel()
	secret, other := quota.NewSecret(), quota.NewSecret()
	c := client(t, "192.0.2.1")
	p := netip.MustParsePrefix("192.0.2.0/24")
	subject := secret.Subject(quota.LevelNetwork, p)
	if again := secret.Subject(quota.LevelNetwork, c.Network()); again != subject {
		t.Error("one network has two subjects in a day")
	}
	for name, s := range map[string]quota.Subject{
		"another day's secret": other.Subject(quota.LevelNetwork, p),
		"another level":        secret.Subject(quota.LevelClient, p),
		"another network":      secret.Subject(quota.LevelNetwork, netip.MustParsePrefix("192.0.3.0/24")),
		"the client in it":     c.Creator(secret),
	} {
		if s == subject {
			t.Errorf("%s gives the same subject", name)
		}
	}
	if len(subject) != 16 || strings.Contains(string(subject), "192.0.2") {
		t.Errorf("the subject is %q, want 16 bytes without the address", subject)
	}
}

// A key is one client wherever it calls from and whatever its limit, and none that
// an address could be.
func TestClientOfKey(t *testing.T) {
	t.Parallel()
	secret := quota.NewSecret()
	key := quota.Key{ID: quota.NewKeyID(), Limit: 500}
	c, raised := quota.ClientOfKey(key), quota.ClientOfKey(quota.Key{ID: key.ID, Limit: 900})
	if c.Key() != key || c.Network().IsValid() || c.String() != "key "+key.ID.String() || len(key.ID.String()) != 16 {
		t.Errorf("%v has the key %v in %v", c, c.Key(), c.Network())
	}
	if c.Creator(secret) != raised.Creator(secret) || len(c.Creator(secret)) != 16 {
		t.Error("another limit makes another subject")
	}
	others := []quota.Client{{}, client(t, "1.2.3.4"), quota.ClientOfKey(quota.Key{ID: key.ID + 1, Limit: 500})}
	// An address whose bits are the id's.
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(key.ID))
	others = append(others, quota.ClientOf(netip.AddrFrom16(b)))
	throttle, err := quota.NewThrottle(quota.ThrottleConfig{Every: time.Hour, Burst: 1, Clients: 64, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := throttle.Allow(c); !ok {
		t.Error("a key's first demand is refused")
	}
	if _, ok := throttle.Allow(raised); ok {
		t.Error("another limit makes another bucket")
	}
	for _, other := range others {
		if other == c || other.Creator(secret) == c.Creator(secret) {
			t.Errorf("%v is taken for %v", other, c)
		}
		if _, ok := throttle.Allow(other); !ok {
			t.Errorf("%v pays for %v", other, c)
		}
	}
}
