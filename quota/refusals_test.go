package quota

import (
	"net/netip"
	"testing"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := NewRefusals()
	one, other := ClientOf(netip.MustParseAddr("192.0.2.1")), ClientOf(netip.MustParseAddr("192.0.2.2"))
	refusal := &ExceededError{Usage{Level: LevelClient, Used: 50, Max: 50}}
	r.Add(one, "2026-11-29", refusal)
	for _, row := range []struct {
		name   string
		client Client
		period string
		want   *ExceededError
	}{
		{"the refused client", one, "2026-11-29", refusal},
		{"its next day", one, "2026-11-30", nil},
		{"another client", other, "2026-11-29", nil},
		{"nobody", Client{}, "2026-11-29", nil},
	} {
		if got := r.Find(row.client, row.period); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
	r.Add(one, "2026-11-30", refusal)
	if r.Find(one, "2026-11-30") == nil || r.Find(one, "2026-11-29") != nil {
		t.Error("a later refusal does not take the place of an earlier one")
	}
}

// A crowd that shares slots is forgotten in part, and nobody answers for another.
func TestRefusalsShareSlots(t *testing.T) {
	t.Parallel()
	r := NewRefusals()
	client := func(i int) Client {
		return ClientOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	const crowd = 4 * refusalSlots
	refusals := make([]ExceededError, crowd)
	for i := range refusals {
		r.Add(client(i), "2026-11-29", &refusals[i])
	}
	found := 0
	for i := range refusals {
		switch got := r.Find(client(i), "2026-11-29"); got {
		case nil:
		case &refusals[i]:
			found++
		default:
			t.Fatalf("client %d is refused as another was", i)
		}
	}
	if found < refusalSlots/2 || found > refusalSlots {
		t.Errorf("%d of %d are remembered in %d slots", found, crowd, refusalSlots)
	}
}
