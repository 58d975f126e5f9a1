package pgtest

import (
	"net/url"
	"testing"
)

// Follow makes the server, running or killed, the synchronous standby of another one:
// from then on, no commit there is acknowledged before it is here, too. What was here
// is gone.
func (s *Server) Follow(t testing.TB, primary *Server) {
	t.Helper()
	err := s.order("follow " + primary.dir)
	if err == nil {
		err = s.connect()
	}
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	// Here, and not in a file that a standby would have a copy of: it has none yet when
	// it is promoted.
	primary.Do(t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	primary.Do(t, "SELECT pg_reload_conf()")
}

// Promote makes a standby take writes.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if err := s.order("promote"); err != nil {
		t.Fatalf("promote: %v", err)
	}
}

// Or returns the URL of a database that is on this server or the one of the URL,
// whichever takes writes.
func (s *Server) Or(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("host", query.Get("host")+","+s.dir)
	query.Set("target_session_attrs", "read-write")
	u.RawQuery = query.Encode()
	return u.String()
}
