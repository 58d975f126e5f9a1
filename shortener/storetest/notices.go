package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"snip/quota"
	"snip/shortener"
)

// testBudget crosses the shares of a day's budget, of which each is told once.
func testBudget(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], quota.Policy{Service: 20}}
	waiting := func() (ids []string) {
		t.Helper()
		for i, s := range stores {
			notices, err := s.Notices(t.Context(), 100)
			if err != nil {
				t.Fatal(err)
			}
			ids = nil
			for _, n := range notices {
				ids = append(ids, n.ID)
				if n.Kind != shortener.KindBudget || n.Text == "" || n.At.IsZero() {
					t.Errorf("handle %d: %+v", i, n)
				}
			}
		}
		return ids
	}
	made := 0
	create := func(now time.Time, n int) {
		t.Helper()
		made++
		if err := m.create(host(1, 1), now, names(fmt.Sprintf("budget-%d", made), n)...); err != nil {
			t.Fatal(err)
		}
	}
	want := func(ids ...string) {
		t.Helper()
		if got := waiting(); !slices.Equal(got, ids) {
			t.Errorf("%v wait, want %v", got, ids)
		}
	}
	create(noon, 9)
	want()
	create(noon, 1) // the tenth of twenty
	want("2026-11-29/budget/50")
	create(noon.Add(time.Second), 8) // over 80 and to 90: the higher is told
	want("2026-11-29/budget/50", "2026-11-29/budget/90")
	if err := m.create(host(1, 1), noon, names("refused", 3)...); err == nil {
		t.Fatal("more than there are")
	}
	want("2026-11-29/budget/50", "2026-11-29/budget/90")
	for range 2 { // the second time it is gone already
		if err := stores[len(stores)-1].Delivered(t.Context(), "2026-11-29/budget/50"); err != nil {
			t.Fatal(err)
		}
	}
	want("2026-11-29/budget/90")
	create(noon.Add(2*time.Second), 2)
	want("2026-11-29/budget/90", "2026-11-29/budget/100")

	// A limit that was raised is crossed again, and told once all the same.
	m.policy.Service = 42
	create(noon.Add(3*time.Second), 1)
	want("2026-11-29/budget/90", "2026-11-29/budget/100")
	m.policy.Service = 23
	create(noon.Add(3*time.Second), 1) // 22 of 23 cross nothing
	create(noon.Add(3*time.Second), 1)
	want("2026-11-29/budget/90", "2026-11-29/budget/100")

	// Another day is told anew.
	m.policy.Service = 2
	create(noon.AddDate(0, 0, 1), 1)
	want("2026-11-29/budget/90", "2026-11-29/budget/100", "2026-11-30/budget/50")
}

// testPost keeps what is posted until it is delivered, once for its ID.
func testPost(t *testing.T, stores []shortener.Store) {
	first, other := stores[0], stores[len(stores)-1]
	notice := func(id string, at time.Time) shortener.Notice {
		return shortener.Notice{ID: id, At: at, Kind: "store", Text: "It is full – voll."}
	}
	a, b := notice("2026-11-29/store/10", noon.Add(time.Hour)), notice("2026-11-29/store/2", noon)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(notices ...shortener.Notice) {
		t.Helper()
		for i, s := range stores {
			if got, err := s.Notices(t.Context(), 2); err != nil || !slices.Equal(got, notices) {
				t.Errorf("handle %d: %v, %v, want %v", i, got, err, notices)
			}
		}
	}
	want()
	do(first.Post(t.Context(), a))
	do(other.Post(t.Context(), b))
	do(first.Post(t.Context(), shortener.Notice{ID: a.ID, At: noon, Kind: "other"}))
	want(b, a) // by time
	do(first.Delivered(t.Context(), b.ID))
	do(first.Delivered(t.Context(), "2026-11-29/unknown"))
	want(a)
	do(other.Post(t.Context(), b)) // it was delivered
	want(a)
	do(other.Post(t.Context(), notice("2026-11-30/store/1", noon.AddDate(0, 0, 1))))
	do(other.Post(t.Context(), b))
	want(a, notice("2026-11-30/store/1", noon.AddDate(0, 0, 1)))
	do(first.Delivered(t.Context(), "2026-11-30/store/1"))
	do(other.Post(t.Context(), notice("2026-12-02/store/1", noon.AddDate(0, 0, 3))))
	want(a, notice("2026-12-02/store/1", noon.AddDate(0, 0, 3))) // what waits is not forgotten
	do(other.Post(t.Context(), b))                               // what was delivered long ago is
	want(b, a)
}

// testHistory tallies a day and keeps what is known of days.
func testHistory(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	for i, n := range []int{3, 1, 7} {
		if err := m.create(host(i, 1), noon, names(fmt.Sprintf("tally-%d", i), n)...); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range stores {
		got, err := s.Tally(t.Context())
		if diff := cmp.Diff([]shortener.DayRecord{{Day: "2026-11-29", Created: 11, Clients: 3, Busiest: 7}}, got); err != nil || diff != "" {
			t.Errorf("handle %d: %v (-want +got):\n%s", i, err, diff)
		}
	}
	add := func(r shortener.DayRecord) {
		t.Helper()
		if err := stores[len(stores)-1].AddHistory(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(service, client int64) map[quota.Level]int64 {
		return map[quota.Level]int64{quota.LevelService: service, quota.LevelClient: client}
	}
	for i := range 405 {
		add(shortener.DayRecord{Day: quota.DayOf(noon.AddDate(0, 0, i-405)).Label, Created: int64(i)})
	}
	add(shortener.DayRecord{Day: "2026-11-29", Created: 5, Clients: 2, Busiest: 4, Refused: refused(0, 3)})
	add(shortener.DayRecord{Day: "2026-11-29", Created: 11, Clients: 3, Busiest: 7, Refused: refused(1, 1)})
	add(shortener.DayRecord{Day: "2026-11-29", Refused: refused(1, 0)})
	want := shortener.DayRecord{Day: "2026-11-29", Created: 11, Clients: 3, Busiest: 7, Refused: refused(2, 4)}
	for i, s := range stores {
		got, err := s.History(t.Context(), 1000)
		if err != nil || len(got) != shortener.HistoryDays {
			t.Fatalf("handle %d: %d days, %v", i, len(got), err)
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("handle %d: the latest day (-want +got):\n%s", i, diff)
		}
		if got[1].Day != "2026-11-28" || got[1].Created != 404 || got[399].Day != "2025-10-26" {
			t.Errorf("handle %d: %+v to %+v", i, got[1], got[399])
		}
		if got, err := s.History(t.Context(), 2); err != nil || len(got) != 2 || got[1].Day != "2026-11-28" {
			t.Errorf("handle %d: %v, %v", i, got, err)
		}
	}
}

// testBusiest has two clients in one network and three in others.
func testBusiest(t *testing.T, stores []shortener.Store) {
	m := maker{t, stores[0], policy}
	for i, row := range []struct{ network, host, links int }{{1, 1, 3}, {1, 2, 4}, {2, 1, 5}, {3, 1, 1}, {4, 1, 6}} {
		if err := m.create(host(row.network, row.host), noon, names(fmt.Sprintf("busy-%d", i), row.links)...); err != nil {
			t.Fatal(err)
		}
	}
	secret, err := stores[0].Secret(t.Context(), "2026-11-29")
	if err != nil {
		t.Fatal(err)
	}
	client := func(network, n int, used int64) shortener.Count {
		return shortener.Count{Subject: host(network, n).Creator(secret), Used: used}
	}
	network := func(n int, used int64) shortener.Count {
		return shortener.Count{Subject: secret.Subject(quota.LevelNetwork, host(n, 1).Network()), Used: used}
	}
	for i, s := range stores {
		for _, row := range []struct {
			day   string
			level quota.Level
			n     int
			want  []shortener.Count
		}{
			{"2026-11-29", quota.LevelClient, 3, []shortener.Count{client(4, 1, 6), client(2, 1, 5), client(1, 2, 4)}},
			{"2026-11-29", quota.LevelNetwork, 10, []shortener.Count{network(1, 7), network(4, 6), network(2, 5), network(3, 1)}},
			{"2026-11-29", quota.LevelService, 10, []shortener.Count{{Used: 19}}},
			{"2026-11-28", quota.LevelClient, 3, nil},
		} {
			if got, err := s.Busiest(t.Context(), row.day, row.level, row.n); err != nil || !slices.Equal(got, row.want) {
				t.Errorf("handle %d: the busiest %d of level %s on %s: %v, %v, want %v", i, row.n, row.level, row.day, got, err, row.want)
			}
		}
	}
}
