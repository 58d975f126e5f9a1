package web

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"snip/quota"
)

// upload sends a list over a connection of its own, and holds what is left of it
// until it is let go.
type upload struct {
	rest   *io.PipeWriter
	answer *httptest.ResponseRecorder
	over   chan struct{}
}

// upload is to be called in a bubble. It returns once nothing goes on but waiting.
func (s *site) upload(client int, announced int64, beginning string) *upload {
	body, rest := io.Pipe()
	u := &upload{rest: rest, answer: httptest.NewRecorder(), over: make(chan struct{})}
	r := httptest.NewRequest(http.MethodPost, "/api/links", body)
	r.RemoteAddr, r.ContentLength = fmt.Sprintf("203.0.%d.%d:40000", client/2, client%2), announced
	r.Header.Set("Content-Type", mediaPlain)
	go func() {
		defer close(u.over)
		s.ServeHTTP(u.answer, r)
		body.Close()
	}()
	go io.WriteString(rest, beginning)
	synctest.Wait()
	return u
}

func (u *upload) answered() bool {
	select {
	case <-u.over:
		return true
	default:
		return false
	}
}

const (
	shortList = "https://example.org/\n"
	overMax   = maxBody + 1
)

// However many send large bodies, few of them are in memory, and nobody has more than
// two. What is small needs no place.
func TestLargeBodiesNeedAPlace(t *testing.T) {
	t.Parallel()
	long := shortList + strings.Repeat("\n", overMax-len(shortList))
	for _, row := range []struct {
		name      string
		announced int64
		sent      string // before the wait
	}{
		{"announced", overMax, ""},
		{"announced, and partly there", overMax, shortList},
		{"found out", -1, long + "\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, siteSetup{})
				var held []*upload
				refused := func(client int) {
					t.Helper()
					u := s.upload(client, row.announced, row.sent)
					if !u.answered() {
						t.Fatalf("client %d has one more place", client)
					}
					wantAnswer(t, u.answer, http.StatusServiceUnavailable, `"code":"unavailable"`)
					if got := u.answer.Header().Get("Retry-After"); got != "10" {
						t.Errorf("Retry-After %q", got)
					}
				}
				for client := range 8 {
					for range 2 {
						u := s.upload(client, row.announced, row.sent)
						if u.answered() {
							t.Fatalf("client %d: %d %s", client, u.answer.Code, u.answer.Body)
						}
						held = append(held, u)
					}
					refused(client)
				}
				refused(9)
				if !strings.Contains(s.log.String(), "kind=uploads") {
					t.Error("nothing is logged")
				}
				for _, client := range []int{0, 9} {
					small := call{from: fmt.Sprintf("203.0.113.%d:40000", client), body: shortList, header: map[string]string{"Content-Type": mediaPlain}}
					wantAnswer(t, s.do(small), http.StatusCreated, "")
				}
				first := held[0]
				io.WriteString(first.rest, long[min(len(row.sent), len(long)):])
				first.rest.Close()
				<-first.over
				wantAnswer(t, first.answer, http.StatusCreated, "")
				again := s.upload(9, row.announced, row.sent)
				if again.answered() {
					t.Fatalf("a place that is free again: %d %s", again.answer.Code, again.answer.Body)
				}
				refused(9)
				for _, u := range append(held[1:], again) {
					u.rest.CloseWithError(io.ErrUnexpectedEOF)
					<-u.over
					wantAnswer(t, u.answer, http.StatusBadRequest, "could not be read to its end")
				}
			})
		})
	}
}

// The clients of one network hold a part of the places and leave the rest to others.
// Keys are in no network.
func TestPlacesOfOneNetwork(t *testing.T) {
	t.Parallel()
	var p places
	client := func(text string, n int) quota.Client {
		return quota.ClientOf(netip.MustParseAddr(fmt.Sprintf(text, n)))
	}
	for n := range 8 {
		if got := p.take(client("2001:db8:1:%x::1", n)); got != (n < maxNetworkPlaces) {
			t.Errorf("client %d of a /48 has a place: %v", n, got)
		}
	}
	for n := range 8 {
		if got := p.take(client("203.0.113.%d", n)); got != (n < maxNetworkPlaces) {
			t.Errorf("client %d of a /24 has a place: %v", n, got)
		}
	}
	for n := range quota.KeyID(8) {
		if !p.take(quota.ClientOfKey(quota.Key{ID: 1 + n/2, Limit: 1})) {
			t.Errorf("key %d has no two places", 1+n/2)
		}
	}
	if p.take(client("198.51.100.%d", 1)) {
		t.Error("there is one place more")
	}
	p.leave(client("2001:db8:1:%x::1", 0))
	if !p.take(client("2001:db8:1:%x::1", 7)) {
		t.Error("a place that was given up is not free again for its network")
	}
}

// heldAnswer is an answer that nobody reads until it is let go.
type heldAnswer struct {
	*httptest.ResponseRecorder
	taken chan struct{}
}

func (w heldAnswer) Write(p []byte) (int, error) {
	<-w.taken
	return w.ResponseRecorder.Write(p)
}

// A place is kept until the answer is out, which may be a page with all that was
// typed, and is given up whatever becomes of the request.
func TestPlaceIsHeldUntilAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, siteSetup{})
		ask := func(w http.ResponseWriter) {
			r := httptest.NewRequest(http.MethodPost, "/api/links", strings.NewReader(multi("url", "ftp:x\n"+strings.Repeat(" ", overMax)+"ftp:y")))
			r.Header.Set("Content-Type", mediaParts)
			r.Header.Set("Accept", "text/html")
			s.ServeHTTP(w, r)
		}
		taken := make(chan struct{})
		for range maxClientPlaces {
			go ask(heldAnswer{httptest.NewRecorder(), taken})
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		ask(w)
		wantAnswer(t, w, http.StatusServiceUnavailable, "10 seconds")
		close(taken)
		synctest.Wait()
		for _, fail := range []func() error{nil, func() error { panic("a bug") }, nil} {
			s.store.fail = fail
			for range maxClientPlaces + 1 {
				w := httptest.NewRecorder()
				if ask(w); w.Code == http.StatusServiceUnavailable {
					t.Fatal("a place was not given up")
				}
			}
		}
	})
}

// What is too much to be shown again is one step back in the browser.
func TestLargeFormIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	for _, row := range []struct {
		size     int
		repeated bool
	}{{maxBody, true}, {overMax, false}} {
		const begin, end = "ftp:x\n", "\nftp:y"
		text := begin + strings.Repeat(`"`, row.size-len(begin)-len(end)) + end
		w := s.do(call{body: multi("url", text), header: map[string]string{"Content-Type": mediaParts, "Accept": "text/html"}})
		wantAnswer(t, w, http.StatusBadRequest, "Line 3: This link must start with")
		if strings.Contains(w.Body.String(), "&#34;") != row.repeated || strings.Contains(w.Body.String(), "one step back") == row.repeated {
			t.Errorf("%d bytes: a page of %d bytes", row.size, w.Body.Len())
		}
	}
}

// The buffer of a large body is no larger than the body.
func TestLargeBodyIsReadIntoItsSize(t *testing.T) {
	t.Parallel()
	for _, announced := range []int64{700_000, -1} {
		r := httptest.NewRequest(http.MethodPost, "/", io.LimitReader(neverEnding{}, 700_000))
		r.ContentLength = announced
		body, err := readBody(httptest.NewRecorder(), r, sizesOfCreations, func([]byte) (int, error) { return maxListBody, nil })
		most := 700_000
		if announced < 0 {
			most = maxListBody
		}
		if err != nil || len(body) != 700_000 || cap(body) > most+1024 {
			t.Errorf("announced %d: %d bytes in %d, %v", announced, len(body), cap(body), err)
		}
	}
}
