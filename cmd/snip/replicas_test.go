package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"snip/quota/pgquota/pgtest"
)

// replicas is servers that share a database.
type replicas struct {
	database string
	servers  []*process
	callers  []*caller
}

// startReplicas starts three servers on an empty database at once, so that one of
// them makes the tables while the others wait.
func startReplicas(t *testing.T, args ...string) *replicas {
	t.Helper()
	r := &replicas{database: pgtest.Database(t)}
	r.start(t, 3, args...)
	return r
}

func (r *replicas) start(t *testing.T, n int, args ...string) {
	t.Helper()
	r.servers, r.callers = make([]*process, n), make([]*caller, n)
	args = append([]string{"--store", r.database, "--admin-token", replicaToken, "--throttle-every=0", "--trusted-proxies=127.0.0.0/8"}, args...)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		dir := t.TempDir()
		wg.Go(func() { r.servers[i], errs[i] = startProcess(dir, nil, args...) })
	}
	wg.Wait()
	for _, p := range r.servers {
		if p != nil {
			t.Cleanup(p.kill)
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, p := range r.servers {
		r.callers[i] = newCaller(t, p)
	}
}

// counted returns an error unless there are as many links as wanted (-1 is any
// number), and each counter holds what links it has paid for.
func (r *replicas) counted(t *testing.T, want int) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		return err
	}
	defer conn.Close(t.Context())
	var links, service, network, wrong int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM links),
		coalesce(sum(used) FILTER (WHERE level = 'service'), 0), coalesce(sum(used) FILTER (WHERE level = 'network'), 0),
		(SELECT count(*) FROM (SELECT day, creator, count(*) AS n FROM links GROUP BY day, creator) l
			FULL JOIN (SELECT * FROM quota_counters WHERE level = 'client') c ON c.period = l.day AND c.subject = l.creator
			WHERE coalesce(l.n, 0) <> coalesce(c.used, 0)) -- one who was refused may have a counter that holds nothing
		FROM quota_counters`).Scan(&links, &service, &network, &wrong)
	switch {
	case err != nil:
		return err
	case links != service || links != network || wrong > 0:
		return fmt.Errorf("%d links, counted for the service %d, for networks %d; %d clients have another number than links", links, service, network, wrong)
	case want >= 0 && links != want:
		return fmt.Errorf("%d links, want %d", links, want)
	}
	return nil
}

// number returns a number that the database holds, or -1.
func (r *replicas) number(t *testing.T, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		return -1
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		return -1
	}
	return n
}

// holds returns an error unless each of the links is there and leads on from every
// server.
func (r *replicas) holds(t *testing.T, links map[string]string) error {
	t.Helper()
	var once sync.Once
	var wrong error
	slugs := make(chan string)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for slug := range slugs {
				for i, c := range r.callers {
					if got, err := c.follow(slug); err != nil || got != links[slug] {
						once.Do(func() { wrong = fmt.Errorf("server %d: /%s leads to %q, %w, want %q", i, slug, got, err, links[slug]) })
					}
				}
			}
		})
	}
	for slug := range links {
		slugs <- slug
	}
	close(slugs)
	wg.Wait()
	return wrong
}

// atOnce sends creations at the same moment, and returns how many were answered with
// each status.
func (r *replicas) atOnce(n int, client func(int) string) (map[int]int, error) {
	var mu sync.Mutex
	answers := map[int]int{}
	var errs []error
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-begin
			status, _, err := r.callers[i%len(r.callers)].create(client(i), fmt.Sprintf("https://example.org/%d", i))
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	close(begin)
	wg.Wait()
	return answers, errors.Join(errs...)
}

// TestReplicasLimit: a limit is exact over all servers.
func TestReplicasLimit(t *testing.T) {
	t.Parallel()
	oneClient := func(int) string { return "198.51.100.1" }
	for name, row := range map[string]struct {
		args           []string
		before         int // links of another client
		callers, admit int
		client         func(int) string
	}{
		"a client's fifty": {nil, 0, 200, 50, oneClient},
		"the service's thousandth": {
			[]string{"--quota-client=1000", "--quota-network=1000", "--quota-newcomers=0"}, 999, 60, 1,
			func(i int) string { return fmt.Sprintf("203.0.%d.1", i) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withinOneDay(t, func() error {
				r := startReplicas(t, row.args...)
				before, err := r.atOnce(row.before, oneClient)
				if err != nil || before[http.StatusCreated] != row.before {
					return fmt.Errorf("before: %v, %w", before, err)
				}
				got, err := r.atOnce(row.callers, row.client)
				want := map[int]int{http.StatusCreated: row.admit, http.StatusTooManyRequests: row.callers - row.admit}
				if err != nil || !maps.Equal(got, want) {
					return fmt.Errorf("answers %v, %w, want %v", got, err, want)
				}
				return r.counted(t, row.before+row.admit)
			})
		})
	}
}

// TestReplicasModel sends random requests to servers in turn, and predicts every
// answer as if there were one.
func TestReplicasModel(t *testing.T) {
	t.Parallel()
	withinOneDay(t, func() error {
		requests := rounds(3_000, 100_000)
		r := startReplicas(t, "--quota-client=20", "--quota-network=50", "--quota-service=1000", "--quota-newcomers=30")
		l := limits{
			client: 20, network: 50, service: 1000, newcomers: 30,
			byClient: map[int]int{}, byNetwork: map[int]int{}, slugs: map[string]bool{},
		}
		random := rand.New(rand.NewPCG(*moments, 1))
		answers := map[int]int{}
		for i := range requests {
			sent := request{client: random.IntN(min(200, 60+i/15)), destination: fmt.Sprintf("https://example.org/%d", i)}
			sent.network = sent.client / 4
			switch random.IntN(10) {
			case 0:
				sent.destination = "nonsense"
			case 1, 2:
				sent.slug = fmt.Sprintf("slug-%d", random.IntN(200))
			}
			c := r.callers[random.IntN(len(r.callers))]
			got, _, err := c.ask(fmt.Sprintf("10.%d.%d.%d", sent.network>>8, sent.network&0xff, sent.client), sent.destination, sent.slug)
			if want := l.answer(sent); got != want || err != nil {
				return fmt.Errorf("request %d, seed %d: %+v was answered with %d, %w, want %d", i, *moments, sent, got, err, want)
			}
			answers[got]++
		}
		for _, status := range []int{http.StatusCreated, http.StatusBadRequest, http.StatusConflict, http.StatusTooManyRequests} {
			if answers[status] == 0 {
				return fmt.Errorf("no request of the sequence was to be answered with %d", status)
			}
		}
		return r.counted(t, l.all)
	})
}
