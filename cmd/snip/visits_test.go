package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// managed is what the holder of a link's token is told.
type managed struct {
	Slug       string `json:"slug"`
	Token      string `json:"manage_token"`
	Visits     int64  `json:"visits"`
	Statistics struct {
		Crawlers int64 `json:"crawlers"` // which Go's client is
		Heads    int64 `json:"heads"`
	} `json:"statistics"`
}

func makeManaged(t *testing.T, p *process, body string) managed {
	t.Helper()
	var m managed
	a := mustAsk(t, http.StatusCreated, "POST", p.url+"/api/links", "application/json", body)
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// read asks for the link with its token.
func (m managed) read(t *testing.T, p *process) (now managed) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, p.url+"/api/links/"+m.Slug, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&now); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", response.StatusCode, err)
	}
	return now
}

// TestKillDuringVisits kills the program while a link with a limit of visits is
// visited. No more are led on than the limit says, in all its lives together, and
// none that was led on is forgotten.
func TestKillDuringVisits(t *testing.T) {
	t.Parallel()
	const limit, visitors, kills = 300, 8, 5
	dir := t.TempDir()
	p := start(t, dir, plenty...)
	link := makeManaged(t, p, `{"url":"https://example.org/","slug":"limited","max_visits":300,"direct_redirect":true}`)
	var led atomic.Int64
	for life := range kills + 1 {
		if life > 0 {
			p = start(t, dir, plenty...)
		}
		c := newCaller(t, p)
		before := led.Load()
		var group sync.WaitGroup
		for visitor := range visitors {
			method, status := http.MethodGet, http.StatusFound
			if visitor%2 == 0 {
				method, status = http.MethodPost, http.StatusSeeOther
			}
			group.Go(func() {
				for {
					location, err := c.visit(method, status, "limited")
					if err != nil || location == "" {
						return // the program is dead, or the link has ended
					}
					if n := led.Add(1); life < kills && n == before+limit/(2*kills) {
						go p.kill()
					}
				}
			})
		}
		group.Wait()
		if life < kills {
			p.kill()
		}
	}
	if n := led.Load(); n > limit || n < limit-visitors*kills {
		t.Errorf("%d visits were led on, want at most %d, and no fewer than those that a kill may have cut off", n, limit)
	}
	if now := link.read(t, p); now.Visits != limit {
		t.Errorf("%d visits are counted, want %d", now.Visits, limit)
	}
}

// TestVisitsOutliveTheProcess: what was counted in memory is stored when the
// program is told to stop.
func TestVisitsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, plenty...)
	link := makeManaged(t, p, `{"url":"https://example.org/"}`)
	c := newCaller(t, p)
	spread(t, 200, func(int) error {
		_, err := c.follow(link.Slug)
		return err
	})
	mustAsk(t, http.StatusFound, "HEAD", p.url+"/"+link.Slug, "", "")
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.log(), "could not be stored") {
		t.Error(p.log())
	}
	p = start(t, dir, plenty...)
	if now := link.read(t, p); now.Statistics.Crawlers != 200 || now.Statistics.Heads != 1 {
		t.Errorf("%+v", now.Statistics)
	}
}
