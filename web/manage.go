package web

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"snip/shortener"
)

// managedLink is a link as its holder sees it.
type managedLink struct {
	ownedLink
	Visits     *int64     `json:"visits"`     // null where they have no limit
	TakenDown  bool       `json:"taken_down"` // by the operator: it leads nowhere and cannot be changed
	Blocked    bool       `json:"blocked"`    // its host is: it leads nowhere
	Statistics statistics `json:"statistics"`
}

// statistics are a link's visits as far as they are for looking at.
type statistics struct {
	Visits     int64           `json:"visits"` // of persons
	Crawlers   int64           `json:"crawlers"`
	Previews   int64           `json:"previews"`
	Heads      int64           `json:"heads"`
	Prefetches int64           `json:"prefetches"`
	Days       []dayVisits     `json:"days"`      // the oldest first
	Referrers  []referrerVisit `json:"referrers"` // the host that brought most first
}

type dayVisits struct {
	Day    string `json:"day"`
	Visits int64  `json:"visits"`
}

type referrerVisit struct {
	Host   string `json:"host"`
	Visits int64  `json:"visits"`
}

func statisticsOf(v shortener.Visits) statistics {
	s := statistics{
		Visits:     v.Kinds[shortener.Person],
		Crawlers:   v.Kinds[shortener.Crawler],
		Previews:   v.Kinds[shortener.Fetcher],
		Heads:      v.Kinds[shortener.Head],
		Prefetches: v.Kinds[shortener.Prefetch],
		Days:       []dayVisits{},
		Referrers:  []referrerVisit{},
	}
	for _, day := range slices.Sorted(maps.Keys(v.Days)) {
		s.Days = append(s.Days, dayVisits{day, v.Days[day]})
	}
	for host, n := range v.Referrers {
		s.Referrers = append(s.Referrers, referrerVisit{host, n})
	}
	slices.SortFunc(s.Referrers, func(a, b referrerVisit) int {
		return cmp.Or(cmp.Compare(b.Visits, a.Visits), cmp.Compare(a.Host, b.Host))
	})
	return s
}

// manage reads, changes or deletes a link for its holder.
func (s *server) manage(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept, Authorization")
	slug, _ := shortener.ParseSlug(strings.TrimPrefix(r.URL.Path, "/api/links/"))
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	if s.foreign.Refuses(r) {
		return s.foreignPage()
	}
	holder, err := s.holder(r, reading)
	if err != nil {
		return err
	}
	if reading {
		managed, err := s.service.Manage(r.Context(), slug, holder)
		if err != nil {
			return err
		}
		return s.writeManaged(w, r, managed)
	}
	// Changes cost no quota, but the writer's time: they have a throttle of their
	// own, so that one holder cannot take it from everybody's creations.
	if wait, ok := s.changes.Allow(holder.Client); !ok {
		return &limitedError{wait: wait, who: holder.Client, change: true}
	}
	if r.Method == http.MethodDelete {
		if err := s.service.Delete(r.Context(), slug, holder); err != nil {
			return err
		}
		w.Header()["Cache-Control"] = noStore
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	wanted, err := readChange(w, r)
	if err != nil {
		return err
	}
	managed, err := s.service.Change(r.Context(), slug, holder, wanted)
	if err != nil {
		return s.limited(err, holder.Client, true)
	}
	return s.writeManaged(w, r, managed)
}

func (s *server) writeManaged(w http.ResponseWriter, r *http.Request, m shortener.Managed) error {
	v := managedLink{ownedLink: s.show(m.Link), TakenDown: m.Link.TakenDown != "", Blocked: m.Blocked, Statistics: statisticsOf(m.Visits)}
	if v.MaxVisits != nil {
		v.Visits = &m.Visited
	}
	return writeJSON(w, r, http.StatusOK, mediaJSON, v)
}

// optional tells a field that is null from one that is left out.
type optional[T any] struct {
	given bool
	value *T
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (o *optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	o.given = true
	return json.UnmarshalDecode(d, &o.value)
}

func (o optional[T]) null() bool { return o.given && o.value == nil }

// changedFields are those of a link that can be changed.
type changedFields struct {
	URL            optional[string] `json:"url"`
	ExpiresAt      optional[string] `json:"expires_at"` // null is never
	MaxVisits      optional[int64]  `json:"max_visits"` // null is any number
	ForwardQuery   optional[bool]   `json:"forward_query"`
	ShowsTarget    optional[bool]   `json:"show_destination"`
	DirectRedirect optional[bool]   `json:"direct_redirect"`
}

const mediaMergePatch = "application/merge-patch+json"

// readChange reads the body of a PATCH: a JSON object with what is to change, as
// in a merge patch (RFC 7396).
func readChange(w http.ResponseWriter, r *http.Request) (shortener.Changed, error) {
	if r.ContentLength > maxBody {
		return shortener.Changed{}, tooLarge(sizeOfChanges)
	}
	kind, _, err := mediaTypeOf(r.Header, mediaJSON, mediaMergePatch)
	if err != nil {
		return shortener.Changed{}, err
	}
	if kind == "" {
		return shortener.Changed{}, unsupported(say("media.none"), mediaJSON)
	}
	body, err := readBody(w, r, sizeOfChanges, func([]byte) (int, error) { return maxBody, nil })
	if err != nil {
		return shortener.Changed{}, err
	}
	var f changedFields
	err = parseJSON(body, &f, unusable)
	switch {
	case err != nil:
	case f.URL.null():
		err = mustBe("url")
	case f.ForwardQuery.null():
		err = mustBe("forward_query")
	case f.ShowsTarget.null():
		err = mustBe("show_destination")
	case f.DirectRedirect.null():
		err = mustBe("direct_redirect")
	}
	if err != nil {
		return shortener.Changed{}, err
	}
	c := shortener.Changed{
		URL:            f.URL.value,
		ExpiresAt:      f.ExpiresAt.value,
		MaxVisits:      f.MaxVisits.value,
		AnyVisits:      f.MaxVisits.null(),
		ForwardQuery:   f.ForwardQuery.value,
		ShowsTarget:    f.ShowsTarget.value,
		DirectRedirect: f.DirectRedirect.value,
	}
	if f.ExpiresAt.null() {
		c.ExpiresAt = new(string)
	}
	return c, nil
}
