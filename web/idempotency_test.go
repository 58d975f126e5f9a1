package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

const testKey = "7f1c8e0a-key-of-a-test"

// try sends a demand with an Idempotency-Key.
func (s *site) try(key, body string) *httptest.ResponseRecorder {
	return s.do(call{body: body, header: merged(asJSON, map[string]string{idempotencyHeader: key})})
}

// wantAgain compares an answer with the first.
func wantAgain(t *testing.T, first, again *httptest.ResponseRecorder) {
	t.Helper()
	if again.Code != first.Code || again.Body.String() != first.Body.String() || again.Header().Get("Location") != first.Header().Get("Location") {
		t.Errorf("again %d %q at %q, want %d %q at %q", again.Code, again.Body, again.Header().Get("Location"), first.Code, first.Body, first.Header().Get("Location"))
	}
}

func TestIdempotencyKeyHeader(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("k", n) }
	for _, row := range []struct {
		name  string
		lines []string
		want  string // empty is refused
	}{
		{"a UUID", []string{"f47ac10b-58cc-4372-a567-0e02b2c3d479"}, "f47ac10b-58cc-4372-a567-0e02b2c3d479"},
		{"quoted", []string{`"f47ac10b-58cc-4372-a567-0e02b2c3d479"`}, "f47ac10b-58cc-4372-a567-0e02b2c3d479"},
		{"the shortest", []string{text(16)}, text(16)},
		{"the longest", []string{text(255)}, text(255)},
		{"the shortest, quoted", []string{`"` + text(16) + `"`}, text(16)},
		{"the longest, quoted", []string{`"` + text(255) + `"`}, text(255)},
		{"every printable character", []string{`"!#$%&'()*+,-./ 09:;<=>?@AZ[\\]^_` + "`az{|}~" + `"`}, "!#$%&'()*+,-./ 09:;<=>?@AZ[\\]^_`az{|}~"},
		{"every character that needs no quotes", []string{"!#$%&'*+-./09:=AZ^_`az|~"}, "!#$%&'*+-./09:=AZ^_`az|~"},
		{"base64", []string{"q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ/+=="}, "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ/+=="},
		{"blanks inside", []string{`"  a key of words  "`}, "  a key of words  "},
		{"escapes", []string{`"a \"key\" of \\ words"`}, `a "key" of \ words`},
		{"an escape that counts once", []string{`"` + strings.Repeat(`\\`, 255) + `"`}, strings.Repeat(`\`, 255)},
		{"empty", []string{""}, ""},
		{"an empty string", []string{`""`}, ""},
		{"too short", []string{text(15)}, ""},
		{"too short without its quotes", []string{`"` + text(15) + `"`}, ""},
		{"too short without its escapes", []string{`"` + strings.Repeat(`\\`, 15) + `"`}, ""},
		{"too long", []string{text(256)}, ""},
		{"too long, quoted", []string{`"` + text(256) + `"`}, ""},
		{"two lines", []string{text(16), text(16)}, ""},
		{"two lines joined by a proxy", []string{`"` + text(16) + `", "` + text(16) + `"`}, ""},
		{"two bare lines joined by a proxy", []string{text(16) + "," + text(16)}, ""},
		{"a bare parameter", []string{text(16) + ";p=1"}, ""},
		{"a bare blank", []string{text(8) + " " + text(8)}, ""},
		{"a bare bracket", []string{text(16) + ")"}, ""},
		{"a bare backslash", []string{text(16) + "\\"}, ""},
		{"not closed", []string{`"` + text(16)}, ""},
		{"only closed", []string{text(16) + `"`}, ""},
		{"a quote inside", []string{text(8) + `"` + text(8)}, ""},
		{"a quote that is not escaped", []string{`"` + text(8) + `"` + text(8) + `"`}, ""},
		{"an escape of something else", []string{`"` + text(16) + `\n"`}, ""},
		{"an escape of nothing", []string{`"` + text(16) + `\`}, ""},
		{"an escaped end", []string{`"` + text(16) + `\"`}, ""},
		{"a parameter", []string{`"` + text(16) + `";p=1`}, ""},
		{"a tab", []string{text(8) + "\t" + text(8)}, ""},
		{"a tab, quoted", []string{`"` + text(8) + "\t" + text(8) + `"`}, ""},
		{"a control character", []string{text(16) + "\x7f"}, ""},
		{"not ASCII", []string{text(16) + "é"}, ""},
		{"not UTF-8", []string{text(16) + "\xff"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			key, err := idempotencyKey(http.Header{idempotencyHeader: row.lines})
			if string(key) != row.want || (err == nil) != (row.want != "") {
				t.Fatalf("key %q, %v, want %q", key, err, row.want)
			}
			s := newSite(t, siteSetup{every: time.Hour, burst: 1})
			r := httptest.NewRequest(http.MethodPost, "/api/links", strings.NewReader(goodJSON))
			r.Header["Content-Type"], r.Header[idempotencyHeader] = []string{mediaJSON}, row.lines
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if row.want != "" {
				wantAnswer(t, w, http.StatusCreated, "")
				return
			}
			want := "be 16 to 255 printable ASCII"
			if strings.Contains(row.name, "bare") || row.name == "only closed" || row.name == "a quote inside" {
				want = "stand between double quotes"
			}
			wantAnswer(t, w, http.StatusBadRequest, `"code":"invalid_request","field":"Idempotency-Key","detail":"Idempotency-Key: must be there once, and `+want)
			if s.store.calls.Load() != 0 {
				t.Error("the store was asked")
			}
			// After the throttle: it has cost its token.
			w = httptest.NewRecorder()
			s.ServeHTTP(w, r)
			wantAnswer(t, w, http.StatusTooManyRequests, "")
		})
	}
	if key, err := idempotencyKey(http.Header{}); key != "" || err != nil {
		t.Errorf("no header: %q, %v", key, err)
	}
}

// A key is printable and of its length, and there is a quoted spelling of it that is
// the same key.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"", testKey, `"` + testKey + `"`, `"` + testKey, `"a \"key\" of \\ words"`, `"\\\\\\\\\\\\\\\\"`, testKey + "\x00", `"";` + testKey} {
		f.Add(seed)
	}
	languages := testCatalogue(f)
	f.Fuzz(func(t *testing.T, line string) {
		key, err := idempotencyKey(http.Header{idempotencyHeader: {line}})
		if err != nil {
			wantFitProblem(t, languages, err)
			return
		}
		if len(key) < 16 || len(key) > 255 || strings.ContainsFunc(string(key), func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q is the key %q", line, key)
		}
		quoted := `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(string(key)) + `"`
		if again, err := idempotencyKey(http.Header{idempotencyHeader: {quoted}}); again != key || err != nil {
			t.Errorf("%q is the key %q, and %q is %q, %v", line, key, quoted, again, err)
		}
	})
}

// The same demand again is the same answer, for a token of the throttle and nothing
// else, whatever has become of the client, the day and the store.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, s *site){
		"at once": func(*testing.T, *site) {},
		"with nothing left": func(t *testing.T, s *site) {
			for range 49 {
				wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
			}
			wantAnswer(t, s.post(goodJSON), http.StatusTooManyRequests, "")
		},
		"after midnight":              func(_ *testing.T, s *site) { s.time.advance(23 * time.Hour) },
		"while nothing can be stored": func(_ *testing.T, s *site) { s.store.failWrites.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, siteSetup{})
			const body = `{"url":"https://example.org/","expires_at":"2026-11-29T12:00:00Z"}`
			first := s.try(testKey, body)
			wantAnswer(t, first, http.StatusCreated, "manage_token")
			change(t, s)
			used := s.used(t)
			wantAgain(t, first, s.try(testKey, body))
			wantAgain(t, first, s.try(`"`+testKey+`"`, ` { "expires_at": "2026-11-29T12:00:00Z", "url": "https://example.org/", "slug": null } `))
			phone := s.do(call{from: "198.51.100.7:5000", body: body, header: merged(asJSON, map[string]string{idempotencyHeader: testKey})})
			wantAgain(t, first, phone) // has changed networks
			if again := s.used(t); again != used {
				t.Errorf("%d used, and after replays %d", used, again)
			}
			text := s.do(call{body: body, header: merged(asJSON, map[string]string{idempotencyHeader: testKey, "Accept": "text/plain"})})
			wantAnswer(t, text, http.StatusCreated, first.Header().Get("Location")+"\n")
			wantAnswer(t, s.try(testKey, goodJSON), http.StatusUnprocessableEntity, `"code":"idempotency_key_reused"`)
		})
	}
}

// After a day the key is new, and a replay costs a token of the throttle.
func TestReplayEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{every: 10 * time.Second, burst: 2})
	first := s.try(testKey, goodJSON)
	wantAgain(t, first, s.try(testKey, goodJSON))
	wantAnswer(t, s.try(testKey, goodJSON), http.StatusTooManyRequests, "rate_limited")
	s.time.advance(24*time.Hour - time.Second)
	wantAgain(t, first, s.try(testKey, goodJSON))
	s.time.advance(time.Second)
	anew := s.try(testKey, goodJSON)
	if wantAnswer(t, anew, http.StatusCreated, ""); anew.Body.String() == first.Body.String() {
		t.Error("the answer was given again after a day")
	}
}

// What another demand with the key is told has nothing of the first in it. Single
// links and batches, and holders of API keys, have keys of their own.
func TestKeyOfAnotherDemand(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	first := s.try(testKey, `{"url":"https://example.org/secret","slug":"hidden"}`)
	wantAnswer(t, first, http.StatusCreated, "")
	other := s.try(testKey, `{"url":"https://example.org/secret","slug":"hidden","max_visits":1}`)
	wantAnswer(t, other, http.StatusUnprocessableEntity, `"status":422,"code":"idempotency_key_reused","detail":"This Idempotency-Key came before with another request. Send a new random one."`)
	if strings.Contains(other.Body.String(), "secret") || other.Header().Get("Location") != "" || other.Header().Get("Retry-After") != "" {
		t.Errorf("%v %s", other.Header(), other.Body)
	}
	batch := s.try(testKey, `[{"url":"https://example.org/secret"}]`)
	wantAnswer(t, batch, http.StatusCreated, "[{")
	wantAgain(t, batch, s.try(testKey, `[{"url":"https://example.org/secret"}]`))
	wantAnswer(t, s.try(testKey, `[{"url":"https://example.org/secret"},{"url":"https://example.org/"}]`), http.StatusUnprocessableEntity, "")
	held := s.do(call{body: goodJSON, header: merged(asJSON, map[string]string{idempotencyHeader: testKey, "Authorization": "Bearer " + s.makeKey(t, "me", 5)})})
	wantAnswer(t, held, http.StatusCreated, "")
	if used := s.used(t); used != 2 {
		t.Errorf("%d used by the address, want 2", used)
	}
}

// A demand that was refused can be tried again with its key.
func TestRefusalsAreNotKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{policy: &quota.Policy{Client: 1}})
	wantAnswer(t, s.try(testKey, `{"url":"ftp:"}`), http.StatusBadRequest, "invalid_url")
	s.store.failWrites.Store(true)
	wantAnswer(t, s.try(testKey, goodJSON), http.StatusServiceUnavailable, "unavailable")
	s.store.failWrites.Store(false)
	wantAnswer(t, s.post(goodJSON), http.StatusCreated, "")
	wantAnswer(t, s.try(testKey, goodJSON), http.StatusTooManyRequests, "rate_limited")
	s.time.advance(15 * time.Hour)
	first := s.try(testKey, goodJSON)
	wantAnswer(t, first, http.StatusCreated, "")
	wantAgain(t, first, s.try(testKey, goodJSON))
}

// An answer that cannot be read is no reason to make the link a second time.
func TestReplayWithoutItsAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	wantAnswer(t, s.try(testKey, goodJSON), http.StatusCreated, "")
	s.store.failAnswers.Store(true)
	wantAnswer(t, s.try(testKey, goodJSON), http.StatusServiceUnavailable, "unavailable")
	if used := s.used(t); used != 1 {
		t.Errorf("%d used", used)
	}
}

func TestTwentyAtOnceWithOneKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteSetup{})
	for _, body := range []string{goodJSON, "[" + goodJSON + "," + goodJSON + "]"} {
		before := s.used(t)
		answers := make([]*httptest.ResponseRecorder, 20)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = s.try(testKey, body) })
		}
		all.Wait()
		for _, w := range answers {
			wantAnswer(t, w, http.StatusCreated, "manage_token")
			wantAgain(t, answers[0], w)
		}
		if used := s.used(t) - before; used != int64(strings.Count(body, "url")) {
			t.Errorf("%s: %d used", body, used)
		}
	}
}

func TestKeyInProgress(t *testing.T) {
	t.Parallel()
	p := (&server{}).problemOf(&refusedForm{err: fmt.Errorf("create: %w", shortener.ErrInProgress)})
	if p.status != http.StatusConflict || p.code != "idempotency_in_progress" || p.retryAfter != time.Second {
		t.Errorf("%+v", p)
	}
}
