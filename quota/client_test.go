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
		{"IPv4-compatible is plain IPv6", "::1.2.3.4", "::/64", "::/48"},
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
