package admin

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
	"snip/shortener/memstore"
)

// desk is an operator at the page of a service at ten in the morning.
type desk struct {
	*visitor
	service *shortener.Service
	clock   *clock
}

func openDesk(t *testing.T, store shortener.Store) desk {
	t.Helper()
	c := &clock{t: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)}
	h, service := openAdmin(t, store, c.now)
	return desk{signIn(t, h), service, c}
}

// make makes a link as a client at an address would.
func (d desk) make(address, slug, destination string) {
	d.t.Helper()
	client := quota.ClientOf(netip.MustParseAddr(address))
	if _, err := d.service.Create(d.t.Context(), client, shortener.NewLink{URL: destination, Slug: slug}, ""); err != nil {
		d.t.Fatal(err)
	}
}

// does sends a form, which must be obeyed, and returns what the next page says.
func (d desk) does(form string, fields ...string) string {
	d.t.Helper()
	w := d.post("/do/"+form, fields...)
	if w.Code != http.StatusSeeOther {
		d.t.Fatalf("%s %q: %d %s", form, fields, w.Code, textOf(w))
	}
	return textOf(d.get(w.Header().Get("Location")))
}

var tags = regexp.MustCompile(`(?s)<script.*?</script>|<[^>]*>`)

// textOf is what a page says.
func textOf(w *httptest.ResponseRecorder) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(w.Body.String(), " "))), " ")
}

func wantText(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("no %q in:\n%s", text, page)
		}
	}
}

// Every form does what it says, once it was confirmed where more is at stake.
func TestForms(t *testing.T) {
	t.Parallel()
	d := openDesk(t, memstore.New())
	for _, slug := range []string{"one", "two", "six"} {
		d.make("192.0.2.1", slug, "https://evil.example/"+slug)
	}
	d.make("198.51.100.7", "ten", "https://sub.evil.example/")
	d.make("198.51.100.7", "good", "https://example.org/")
	down := func(want ...string) {
		t.Helper()
		got := 0
		err := d.service.Select(t.Context(), shortener.Selection{}, func(l shortener.Link) bool {
			if l.TakenDown != "" {
				got++
			}
			return true
		})
		if err != nil || got != len(want) {
			t.Errorf("%d links are taken down, %v, want %v", got, err, want)
		}
		for _, slug := range want {
			if m, err := d.service.Show(t.Context(), shortener.Slug(slug)); err != nil || m.Link.TakenDown == "" {
				t.Errorf("%s: %v, %v, want it taken down", slug, m.Link.TakenDown, err)
			}
		}
	}
	asked := func(question, form string, fields ...string) {
		t.Helper()
		w := d.post("/do/"+form, fields...)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", form, w.Code)
		}
		wantText(t, textOf(w), question)
	}

	wantText(t, d.does("disable", "slug", "one", "reason", "spam", "note", "seen <b>twice</b>"), "Taken down: 1 link of one.", "taken down: spam", "(spam): seen <b>twice</b>")
	down("one")
	asked("Take down every link of host evil.example? That is 4 links; 1 taken down already.", "disable", "host", "evil.example", "reason", "malware")
	down("one")
	wantText(t, d.does("disable", "host", "evil.example", "reason", "malware", "confirmed", "yes"), "Taken down: 4 links of host evil.example.")
	down("one", "two", "six", "ten")
	wantText(t, d.does("enable", "slug", "one"), "Brought back: 1 link of one.")
	down("two", "six", "ten")
	asked("Let every link of host evil.example lead on that was taken down? That is 3 links.", "enable", "host", "evil.example")
	d.does("enable", "host", "evil.example", "confirmed", "yes")
	down()
	asked("Take down every link of creator of ten? That is 2 links; 0 taken down already.", "disable", "creator_of", "ten", "reason", "spam")
	d.does("disable", "creator_of", "ten", "reason", "spam", "confirmed", "yes")
	down("ten", "good")

	asked("Delete 1 link for ever? six leads to https://evil.example/six. Its slug stays taken.", "delete", "slug", "six")
	wantText(t, d.does("delete", "slug", "six", "confirmed", "yes"), "Deleted: six.")
	if _, err := d.service.Show(t.Context(), "six"); !errors.Is(err, shortener.ErrGone) {
		t.Errorf("six: %v", err)
	}

	wantText(t, d.does("block", "host", " Evil.Example. ", "note", "a gang"), "Blocked: evil.example and its subdomains.", "evil.example a gang Unblock")
	wantText(t, d.does("unblock", "host", "evil.example"), "Not blocked any more: evil.example.")

	limits := func(address string) quota.Policy {
		return d.service.Limits(quota.ClientOf(netip.MustParseAddr(address)))
	}
	wantText(t, d.does("set-override", "target", "203.0.113.7", "kind", "limit", "limit", "300", "hours", "2", "note", "a fair"),
		"The override of 203.0.113.7/32 is set.", "203.0.113.7/32 300 links a day until 2026-11-29 12:00:00 UTC a fair")
	if got := limits("203.0.113.7").Client; got != 300 {
		t.Errorf("the override: %d", got)
	}
	d.clock.advance(2 * time.Hour)
	*d.visitor = *signIn(t, d.h) // it was idle for too long
	if got := limits("203.0.113.7").Client; got != 50 {
		t.Errorf("two hours later: %d", got)
	}
	wantText(t, d.does("set-override", "target", "203.0.113.7", "kind", "unlimited"), "203.0.113.7/32 any number a day Remove")
	wantText(t, d.does("set-override", "target", "203.0.113.7", "kind", "block"), "203.0.113.7/32 none Remove")
	if !limits("203.0.113.7").Blocked {
		t.Error("it is not blocked")
	}
	wantText(t, d.does("remove-override", "target", "203.0.113.7/32"), "The override of 203.0.113.7/32 is removed.")

	page := d.does("create-key", "name", "news & more", "daily", "500")
	wantText(t, page, `The key "news & more" may make 500 links a day. This is the only time that it is shown.`, "news & more 0 of 500 today")
	if strings.Contains(d.get("/").Body.String(), shortener.KeyPrefix) {
		t.Error("the key is shown twice")
	}
	wantText(t, d.does("change-key", "name", "news & more", "daily", "600"), `The key "news & more" may make 600 links a day now.`)
	asked(`Revoke the key "news & more"? Its holder cannot make links any more. Those that it made lead on; today it has made 0 links.`, "revoke-key", "name", "news & more")
	wantText(t, d.does("revoke-key", "name", "news & more", "confirmed", "yes"), `The key "news & more" is revoked.`)
}

// A form means the key that the page has shown, and not another one that got its name
// between the question and the answer.
func TestFormsMeanTheKeyThatWasShown(t *testing.T) {
	t.Parallel()
	d := openDesk(t, memstore.New())
	d.does("create-key", "name", "news", "daily", "5")
	shown := regexp.MustCompile(`name="id" value="([0-9a-f]{16})"`).FindAllStringSubmatch(d.get("/").Body.String(), -1)
	if len(shown) != 2 {
		t.Fatalf("the page shows the ids %q", shown)
	}
	id := shown[0][1]
	if question := d.post("/do/revoke-key", "name", "news", "id", id).Body.String(); !strings.Contains(question, `name="id" value="`+id+`"`) {
		t.Errorf("the question forgets the id:\n%s", question)
	}
	if err := d.service.RevokeKey(t.Context(), "news", 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.service.CreateKey(t.Context(), "news", 7); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*httptest.ResponseRecorder{
		d.post("/do/revoke-key", "form", "key", "name", "news", "id", id, "confirmed", "yes"),
		d.post("/do/change-key", "form", "key", "name", "news", "id", id, "daily", "9"),
	} {
		wantAnswer(t, w, http.StatusConflict, "was changed meanwhile")
	}
	wantAnswer(t, d.post("/do/revoke-key", "form", "key", "name", "news", "id", "news", "confirmed", "yes"), http.StatusBadRequest, "16 hexadecimal digits")
	if keys, err := d.service.Keys(t.Context()); err != nil || len(keys) != 1 || keys[0].Daily != 7 {
		t.Errorf("the keys are %+v, %v", keys, err)
	}
}

// The key's text is in the page once, where its holder can be given it.
func TestKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	d := openDesk(t, memstore.New())
	d.post("/do/create-key", "name", "news", "daily", "5")
	if strings.Contains(d.get("/live").Body.String(), shortener.KeyPrefix) {
		t.Error("the script's page has the key, and forgets it")
	}
	text := regexp.MustCompile(`value="(snip_[^"]+)"`).FindStringSubmatch(d.get("/").Body.String())
	if text == nil {
		t.Fatal("the key is not shown")
	}
	if _, ok := d.service.FindKey(shortener.Token(text[1])); !ok {
		t.Error("what is shown is no key")
	}
}

// What is wrong is told at the form, which keeps what was typed.
func TestWrongForms(t *testing.T) {
	t.Parallel()
	d := openDesk(t, memstore.New())
	d.make("192.0.2.1", "one", "https://example.org/")
	d.does("block", "host", "there.example")
	d.does("create-key", "name", "there", "daily", "5")
	for _, row := range []struct {
		form, at string
		fields   []string
		status   int
		text     string
	}{
		{"disable", "newest", []string{"slug", "none", "reason", "spam", "note", "typed"}, 404, "no such link"},
		{"disable", "newest", []string{"slug", "one", "reason", "boredom", "note", "typed"}, 400, "reason must be one of"},
		{"disable", "newest", []string{"reason", "spam", "note", "typed"}, 400, "a slug, a host or a creator is needed"},
		{"disable", "newest", []string{"slug", "one", "host", "a.example", "reason", "spam", "note", "typed"}, 400, "one of them"},
		{"disable", "newest", []string{"creator_of", "none", "reason", "spam", "note", "typed"}, 404, "no such link"},
		{"disable", "newest", []string{"host", "a b", "reason", "spam", "note", "typed"}, 400, "host "},
		{"enable", "newest", []string{"slug", "none", "note", "typed"}, 404, "no such link"},
		{"delete", "newest", []string{"slug", "none", "note", "typed"}, 404, "no such link"},
		{"delete", "newest", []string{"slug", "none", "confirmed", "yes", "note", "typed"}, 404, "no such link"},
		{"block", "block", []string{"host", "typed"}, 400, "would block every host"},
		{"block", "block", []string{"host", "there.example", "note", "typed"}, 409, "exists already"},
		{"unblock", "block", []string{"host", "other.example", "note", "typed"}, 404, "does not exist"},
		{"set-override", "override", []string{"target", "typed", "kind", "block"}, 400, "neither an address"},
		{"set-override", "override", []string{"target", "192.0.2.1", "limit", "typed"}, 400, "limit must be a whole number"},
		{"set-override", "override", []string{"target", "192.0.2.1", "limit", "0", "note", "typed"}, 400, "limit must be a whole number of at least 1"},
		{"set-override", "override", []string{"target", "192.0.2.1", "limit", "5", "hours", "typed"}, 400, "hours must be a whole number"},
		{"remove-override", "override", []string{"target", "192.0.2.1", "note", "typed"}, 404, "does not exist"},
		{"create-key", "key", []string{"name", "typed", "daily", "many"}, 400, "daily must be a whole number"},
		{"create-key", "key", []string{"name", "typed", "daily", "901"}, 400, "daily must be at most 900"},
		{"create-key", "key", []string{"name", "there", "daily", "6"}, 409, "exists already"},
		{"change-key", "key", []string{"name", "typed", "daily", "6"}, 404, "does not exist"},
		{"revoke-key", "key", []string{"name", "typed"}, 404, "does not exist"},
	} {
		w := d.post("/do/"+row.form, append(row.fields, "form", row.at)...)
		page := textOf(w)
		at := strings.Index(page, "Not done: ")
		if w.Code != row.status || at < 0 || !strings.Contains(page[at:], row.text) {
			t.Errorf("%s %q: %d, want %d with %q in:\n%s", row.form, row.fields, w.Code, row.status, row.text, page)
		}
		if typed := strings.Contains(w.Body.String(), `value="typed"`) || row.fields[1] == "there"; !typed {
			t.Errorf("%s %q: what was typed is gone", row.form, row.fields)
		}
	}
	if m, err := d.service.Show(t.Context(), "one"); err != nil || m.Link.TakenDown != "" {
		t.Errorf("something was done: %+v, %v", m.Link, err)
	}
	wantAnswer(t, d.post("/do/block", "host", strings.Repeat("x", maxBody)), http.StatusBadRequest, "Refused: the body cannot be used: it has more than 65536 bytes.")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	d := openDesk(t, memstore.New())
	for i := range 3 {
		for j := range 40 {
			slug := string(rune('a'+i)) + "-" + strings.Repeat("x", j+1)
			d.make("192.0."+string(rune('1'+i))+".1", slug, "https://many.example/"+slug)
		}
	}
	d.make("198.51.100.7", "alone", "https://sub.few.example/")
	for q, want := range map[string]string{
		"alone":          "alone https://sub.few.example/",
		"few.example":    "alone https://sub.few.example/",
		"many.example":   "There are others. Disable all of many.example",
		"none.example":   "No link leads there.",
		"missing":        "Not done: link missing: no such link.",
		"bad..example":   "Not done: invalid selection: ",
		"<script>.a.b\"": "Not done: invalid selection: ",
	} {
		w := d.send("GET", "/?"+"q="+strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22").Replace(q), nil)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", q, w.Code)
		}
		wantText(t, textOf(w), want)
	}
	if got := strings.Count(d.get("/?q=many.example").Body.String(), "<li"); got < mostFound {
		t.Errorf("%d lines", got)
	}
	// What is done to what was found leads back to it.
	w := d.post("/do/disable", "slug", "alone", "reason", "spam", "q", "few.example")
	if got := w.Header().Get("Location"); got != "/?q=few.example" {
		t.Errorf("back to %q", got)
	}
}

// No address of whoever made links is in the page, or is a part of it.
func TestThePageHasNoAddress(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	d := openDesk(t, store)
	addresses := []string{"203.0.113.77", "203.0.113.78", "2001:db8:77::1"}
	for i, address := range addresses {
		for j := range 3 - i {
			d.make(address, strings.Repeat(string(rune('a'+i)), 3+j), "https://example.org/")
		}
	}
	for _, w := range []*httptest.ResponseRecorder{d.get("/"), d.get("/?q=example.org"), d.get("/live"), d.post("/do/disable", "creator_of", "aaa", "reason", "spam")} {
		for _, part := range []string{"203.0.113", "2001:db8", "db8:77"} {
			if strings.Contains(w.Body.String(), part) {
				t.Errorf("%s is in:\n%s", part, w.Body)
			}
		}
	}
	page := textOf(d.get("/"))
	secret, err := store.Secret(t.Context(), "2026-11-29")
	if err != nil {
		t.Fatal(err)
	}
	busiest := quota.ClientOf(netip.MustParseAddr(addresses[0]))
	network := shortName(secret.Subject(quota.LevelNetwork, busiest.Network()))
	wantText(t, page, "client Links "+shortName(busiest.Creator(secret))+" 3", "network Links "+network+" 5", "aaa https://example.org/", "by "+shortName(busiest.Creator(secret)))
}

// The page shows what can be read when something cannot.
func TestThePageOfABrokenStore(t *testing.T) {
	t.Parallel()
	store := &brokenStore{Store: memstore.New()}
	d := openDesk(t, store)
	d.make("192.0.2.1", "one", "https://example.org/")
	store.broken = true
	w := d.get("/")
	wantAnswer(t, w, http.StatusOK, "")
	wantText(t, textOf(w), "Cannot be read: audit log: unavailable: the disk is gone.", "Links cannot be made: the disk is gone.", "one https://example.org/")
}

type brokenStore struct {
	shortener.Store
	broken bool
}

var errDisk = errors.New("the disk is gone")

func (s *brokenStore) Audit(ctx context.Context, before uint64, n int) ([]shortener.AuditLine, error) {
	if s.broken {
		return nil, errDisk
	}
	return s.Store.Audit(ctx, before, n)
}

func (s *brokenStore) Act(ctx context.Context, act shortener.Act) (shortener.Done, error) {
	if s.broken {
		return shortener.Done{}, errDisk
	}
	return s.Store.Act(ctx, act)
}

func (s *brokenStore) Ready(ctx context.Context, day string) error {
	if s.broken {
		return errDisk
	}
	return s.Store.Ready(ctx, day)
}
