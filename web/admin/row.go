package admin

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"snip/quota"
	"snip/shortener"
)

// row is a link as it is exported, with all that it takes to make it again. What
// is zero is left out.
type row struct {
	Slug           shortener.Slug `json:"slug"`
	URL            string         `json:"url,omitzero"`
	CreatedAt      time.Time      `json:"created_at"`
	ExpiresAt      time.Time      `json:"expires_at,omitzero"`
	MaxVisits      int64          `json:"max_visits,omitzero"`
	Visits         int64          `json:"visits,omitzero"` // counted for that limit
	ForwardQuery   bool           `json:"forward_query,omitzero"`
	ShowsTarget    bool           `json:"show_destination,omitzero"`
	DirectRedirect bool           `json:"direct_redirect,omitzero"`
	TakenDown      string         `json:"taken_down,omitzero"`
	Deleted        bool           `json:"deleted,omitzero"`
	Key            octets         `json:"key,omitempty"`        // the id of the API key that made it
	Creator        octets         `json:"creator,omitempty"`    // the same for links that one client made on one day
	TokenHash      octets         `json:"token_hash,omitempty"` // of the manage token
	Statistics     *statistics    `json:"statistics,omitzero"`
}

// statistics are a link's visits by kind, and those of persons by day and by host.
type statistics struct {
	Visits     int64            `json:"visits,omitzero"` // of persons
	Crawlers   int64            `json:"crawlers,omitzero"`
	Previews   int64            `json:"previews,omitzero"`
	Heads      int64            `json:"heads,omitzero"`
	Prefetches int64            `json:"prefetches,omitzero"`
	Days       map[string]int64 `json:"days,omitzero"`
	Referrers  map[string]int64 `json:"referrers,omitzero"`
}

// octets are bytes in hexadecimal digits.
type octets []byte

// MarshalText implements [encoding.TextMarshaler].
func (o octets) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, o), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (o *octets) UnmarshalText(text []byte) (err error) {
	*o, err = hex.AppendDecode(nil, text)
	return err
}

func rowOf(m shortener.Managed) row {
	link := m.Link
	r := row{
		Slug:           link.Slug,
		URL:            link.Destination,
		CreatedAt:      link.CreatedAt,
		ExpiresAt:      link.ExpiresAt,
		MaxVisits:      link.MaxVisits,
		Visits:         m.Visited,
		ForwardQuery:   link.ForwardQuery,
		ShowsTarget:    link.ShowsTarget,
		DirectRedirect: link.DirectRedirect,
		TakenDown:      link.TakenDown,
		Deleted:        link.Deleted,
		Creator:        octets(link.Creator),
	}
	if link.Key != 0 {
		r.Key = binary.BigEndian.AppendUint64(nil, uint64(link.Key))
	}
	if link.Token != (shortener.TokenHash{}) {
		r.TokenHash = link.Token[:]
	}
	if m.Visits.Any() {
		r.Statistics = &statistics{
			Visits:     m.Visits.Kinds[shortener.Person],
			Crawlers:   m.Visits.Kinds[shortener.Crawler],
			Previews:   m.Visits.Kinds[shortener.Fetcher],
			Heads:      m.Visits.Kinds[shortener.Head],
			Prefetches: m.Visits.Kinds[shortener.Prefetch],
			Days:       m.Visits.Days,
			Referrers:  m.Visits.Referrers,
		}
	}
	return r
}

// link is the inverse of rowOf.
func (r row) link() (m shortener.Managed, err error) {
	m.Link = shortener.Link{
		Slug:           r.Slug,
		Destination:    r.URL,
		CreatedAt:      r.CreatedAt.UTC(),
		ExpiresAt:      r.ExpiresAt.UTC(),
		MaxVisits:      r.MaxVisits,
		ForwardQuery:   r.ForwardQuery,
		ShowsTarget:    r.ShowsTarget,
		DirectRedirect: r.DirectRedirect,
		TakenDown:      r.TakenDown,
		Deleted:        r.Deleted,
		Creator:        quota.Subject(r.Creator),
	}
	m.Visited = r.Visits
	switch len(r.Key) {
	case 0:
	case 8:
		m.Link.Key = quota.KeyID(binary.BigEndian.Uint64(r.Key))
	default:
		return m, fmt.Errorf("key: 16 hexadecimal digits are needed")
	}
	switch len(r.TokenHash) {
	case 0:
	case len(m.Link.Token):
		copy(m.Link.Token[:], r.TokenHash)
	default:
		return m, fmt.Errorf("token_hash: %d hexadecimal digits are needed", 2*len(m.Link.Token))
	}
	if v := r.Statistics; v != nil {
		m.Visits.Kinds[shortener.Person] = v.Visits
		m.Visits.Kinds[shortener.Crawler] = v.Crawlers
		m.Visits.Kinds[shortener.Fetcher] = v.Previews
		m.Visits.Kinds[shortener.Head] = v.Heads
		m.Visits.Kinds[shortener.Prefetch] = v.Prefetches
		m.Visits.Days, m.Visits.Referrers = v.Days, v.Referrers
	}
	return m, nil
}

// encodeRow returns a line of an export. Text that is no valid UTF-8, which JSON
// could not hold as it is, is an error.
func encodeRow(m shortener.Managed) ([]byte, error) {
	line, err := json.Marshal(rowOf(m), json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be exported: %w", m.Link.Slug, err)
	}
	return append(line, '\n'), nil
}

func decodeRow(line []byte) (m shortener.Managed, err error) {
	var r row
	if err := json.Unmarshal(line, &r, json.RejectUnknownMembers(true)); err != nil {
		// The slug tells which link it is, whatever is wrong with what follows it.
		var named struct {
			Slug shortener.Slug `json:"slug"`
		}
		_ = json.Unmarshal(line, &named, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		m.Link.Slug = named.Slug
		return m, jsonFault(err)
	}
	return r.link()
}
