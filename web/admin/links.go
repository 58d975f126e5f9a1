package admin

import (
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"snip/quota"
	"snip/shortener"
)

// link is a link as an operator sees it.
type link struct {
	Slug      shortener.Slug `json:"slug"`
	URL       string         `json:"url"`
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt time.Time      `json:"expires_at,omitzero"` // absent is never
	MaxVisits int64          `json:"max_visits,omitempty"`
	Key       string         `json:"key,omitempty"`        // the id of the API key that made it
	TakenDown string         `json:"taken_down,omitempty"` // the reason's code
}

func viewLink(l shortener.Link) link {
	v := link{Slug: l.Slug, URL: l.Destination, CreatedAt: l.CreatedAt, ExpiresAt: l.ExpiresAt, MaxVisits: l.MaxVisits, TakenDown: l.TakenDown}
	if l.Key != quota.KeyID(0) {
		v.Key = l.Key.String()
	}
	return v
}

// mostLinks bounds how many links one answer lists.
const mostLinks = 10_000

// listLinks lists the links that the query means, up to its limit.
func (s *server) listLinks(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit, err := number(r, "limit", 100, mostLinks)
	if err != nil {
		return err
	}
	answer := struct {
		Links []link `json:"links"`
		More  bool   `json:"more"` // whether there are others
	}{Links: []link{}}
	sel := shortener.Selection{
		Slug:      shortener.Slug(query.Get("slug")),
		Host:      query.Get("host"),
		CreatorOf: shortener.Slug(query.Get("creator_of")),
	}
	err = s.service.Select(r.Context(), sel, func(l shortener.Link) bool {
		if answer.More = int64(len(answer.Links)) == limit; answer.More {
			return false
		}
		answer.Links = append(answer.Links, viewLink(l))
		return true
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

// showLink tells all that is known of one link.
func (s *server) showLink(w http.ResponseWriter, r *http.Request) error {
	m, err := s.service.Show(r.Context(), shortener.Slug(r.URL.Query().Get("slug")))
	if err != nil {
		return err
	}
	var all int64
	for _, n := range m.Visits.Kinds {
		all += n
	}
	return writeJSON(w, http.StatusOK, struct {
		link
		Visited    int64            `json:"visited"` // of max_visits
		Visits     int64            `json:"visits"`  // of people
		Days       map[string]int64 `json:"days"`
		Referrers  map[string]int64 `json:"referrers"`
		NotPersons int64            `json:"not_persons"` // crawlers, previews, HEAD and prefetches
	}{
		link:       viewLink(m.Link),
		Visited:    m.Visited,
		Visits:     m.Visits.Total(),
		Days:       m.Visits.Days,
		Referrers:  m.Visits.Referrers,
		NotPersons: all - m.Visits.Total(),
	})
}

// selection is the body of what is done to links.
type selection struct {
	Slug      shortener.Slug `json:"slug"`
	Host      string         `json:"host"`
	CreatorOf shortener.Slug `json:"creator_of"`
	Reason    string         `json:"reason"`
	Note      string         `json:"note"`
}

func (v selection) meant() shortener.Selection {
	return shortener.Selection{Slug: v.Slug, Host: v.Host, CreatorOf: v.CreatorOf}
}

func (s *server) disableLinks(w http.ResponseWriter, r *http.Request) error {
	return change(w, r, func(v selection) (int, error) {
		return s.takeDown(r.Context(), v.meant(), v.Reason, v.Note)
	})
}

func (s *server) enableLinks(w http.ResponseWriter, r *http.Request) error {
	return change(w, r, func(v selection) (int, error) {
		return s.bringBack(r.Context(), v.meant(), v.Note)
	})
}

func (s *server) deleteLink(w http.ResponseWriter, r *http.Request) error {
	return change(w, r, func(v selection) (int, error) {
		return s.remove(r.Context(), v.Slug, v.Note)
	})
}

// expiredTime bounds one request that deletes links that have expired; the next one goes
// on where it ended.
const expiredTime = 20 * time.Second

// deleteExpired deletes links that have expired, or counts them, and answers with their
// number and where to go on: nothing is left to do once that is empty.
func (s *server) deleteExpired(w http.ResponseWriter, r *http.Request) error {
	var wanted struct {
		ExpiredBefore time.Time `json:"expired_before"`
		DryRun        bool      `json:"dry_run"`
		Note          string    `json:"note"`
		Mark          string    `json:"mark"` // what an answer before had in "next"
	}
	if err := readJSON(w, r, &wanted); err != nil {
		return err
	}
	mark, err := base64.RawURLEncoding.DecodeString(wanted.Mark)
	if err != nil {
		return &badRequest{errors.New("mark must be what an answer had in next")}
	}
	e := shortener.Expired{Before: wanted.ExpiredBefore, DryRun: wanted.DryRun, Note: wanted.Note, Mark: string(mark)}
	links := 0
	for end := time.Now().Add(expiredTime); ; {
		n, next, err := s.service.DeleteExpired(r.Context(), e)
		if links += n; err != nil {
			s.cleared(e, links)
			return err
		}
		if e.Mark = next; next == "" || time.Now().After(end) {
			break
		}
	}
	s.cleared(e, links)
	return writeJSON(w, http.StatusOK, struct {
		Links int    `json:"links"`
		Next  string `json:"next"`
	}{links, base64.RawURLEncoding.EncodeToString([]byte(e.Mark))})
}

func (s *server) cleared(e shortener.Expired, links int) {
	if links > 0 && !e.DryRun {
		s.log.Info("links that had expired were deleted", "links", links, "before", e.Before)
	}
}

// change does something to links and answers with their number.
func change(w http.ResponseWriter, r *http.Request, do func(selection) (int, error)) error {
	var v selection
	if err := readJSON(w, r, &v); err != nil {
		return err
	}
	n, err := do(v)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]int{"links": n})
}
