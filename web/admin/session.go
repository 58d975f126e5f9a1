package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

const (
	// A session ends when nothing was asked for so long, or when it is so old.
	idleSession, oldSession = time.Hour, 12 * time.Hour
	// mostSessions bounds their number; one more ends the one that was idle longest.
	mostSessions = 64
)

const sessionCookie = "snip_session"

// session is an operator's who has shown the token.
type session struct {
	formToken   string // that every form of the session carries
	began, seen time.Time
	said        flash
}

// flash is what the next page says of what was done.
type flash struct {
	Text string
	Key  string // of an API key just made, shown this once
}

// sessions are kept in memory, by the hashes of what the cookies hold: they end
// with the process.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	all map[[sha256.Size]byte]*session
}

// begin returns the value of a cookie, new each time: what a browser sent before
// is never taken on.
func (s *sessions) begin() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if len(s.all) == mostSessions {
		s.endLongestIdle()
	}
	value := rand.Text() // 128 bits at least
	s.all[sha256.Sum256([]byte(value))] = &session{formToken: rand.Text(), began: now, seen: now}
	return value
}

func (s *sessions) endLongestIdle() {
	var longest [sha256.Size]byte
	var seen time.Time
	for id, one := range s.all {
		if seen.IsZero() || one.seen.Before(seen) {
			longest, seen = id, one.seen
		}
	}
	delete(s.all, longest)
}

func (s *session) ended(now time.Time) bool {
	return now.Sub(s.seen) >= idleSession || now.Sub(s.began) >= oldSession
}

// find returns the session of a request, or nil. A page that looks again by itself
// does not keep it from being idle.
func (s *sessions) find(r *http.Request, byItself bool) *session {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[sha256.Sum256([]byte(cookie.Value))]
	now := s.now()
	if one == nil || one.ended(now) {
		return nil
	}
	if !byItself {
		one.seen = now
	}
	return one
}

// end ends the session of a request, if there is one.
func (s *sessions) end(r *http.Request) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(cookie.Value)))
}

// say keeps a flash for the session's next page.
func (s *sessions) say(one *session, said flash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.said = said
}

// said returns the flash and forgets it.
func (s *sessions) said(one *session) flash {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := one.said
	one.said = flash{}
	return said
}

// knows reports whether the form carries the session's token.
func (s *session) knows(formToken string) bool {
	return subtle.ConstantTimeCompare([]byte(formToken), []byte(s.formToken)) == 1
}

// cookie holds a session, or ends it where the value is empty. It is Secure where
// TLS has come as far as the proxy: without TLS a browser would not send it back.
// Whoever lies in that header harms nobody but their own sign-in.
func cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{
		Name:     sessionCookie,
		Value:    value,
		Path:     "/",
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
		Secure:   r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
