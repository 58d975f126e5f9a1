package pgstore

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/shortener"
)

// linkColumns are those of a link, in the order of scanLink.
const linkColumns = `slug, destination, created_at, expires_at, day, creator, key, max_visits, forward_query, shows_target, token, taken_down, deleted, visited, direct_redirect`

// visitedLink is a link with how many of its visits were counted.
type visitedLink struct {
	shortener.Link
	visited int64
}

func scanLink(row pgx.CollectableRow) (visitedLink, error) { return scanLinkWith(row) }

// scanLinkWith is scanLink for rows with more columns behind those of a link.
func scanLinkWith(row pgx.CollectableRow, more ...any) (l visitedLink, err error) {
	var (
		destination, creator, token []byte
		expiresAt                   *time.Time
		key                         int64
	)
	err = row.Scan(append([]any{(*string)(&l.Slug), &destination, &l.CreatedAt, &expiresAt, &l.Day, &creator, &key, &l.MaxVisits,
		&l.ForwardQuery, &l.ShowsTarget, &token, &l.TakenDown, &l.Deleted, &l.visited, &l.DirectRedirect}, more...)...)
	if err != nil {
		return l, err
	}
	l.Destination, l.Creator, l.Key = string(destination), quota.Subject(creator), quota.KeyID(key)
	l.CreatedAt = l.CreatedAt.UTC()
	if expiresAt != nil {
		l.ExpiresAt = expiresAt.UTC()
	}
	switch len(token) {
	case 0:
	case len(l.Token):
		copy(l.Token[:], token)
	default:
		return l, fmt.Errorf("link %s: the token's hash has %d bytes, not %d", l.Slug, len(token), len(l.Token))
	}
	return l, nil
}

// linkArrays are links column by column, as [pgx] takes many rows at once.
type linkArrays struct {
	slugs, days, takenDown             []string
	destinations, creators, tokens     [][]byte
	createdAt                          []time.Time
	expiresAt                          []*time.Time
	keys, maxVisits, visited           []int64
	forwardQuery, showsTarget, deleted []bool
	directRedirect                     []bool
}

func (a *linkArrays) add(l visitedLink) {
	a.slugs, a.days, a.takenDown = append(a.slugs, string(l.Slug)), append(a.days, l.Day), append(a.takenDown, l.TakenDown)
	token := []byte{}
	if l.Token != (shortener.TokenHash{}) {
		token = slices.Clone(l.Token[:])
	}
	a.destinations, a.creators, a.tokens = append(a.destinations, []byte(l.Destination)), append(a.creators, []byte(l.Creator)), append(a.tokens, token)
	a.createdAt = append(a.createdAt, l.CreatedAt)
	var expiresAt *time.Time
	if !l.ExpiresAt.IsZero() {
		expiresAt = &l.ExpiresAt
	}
	a.expiresAt = append(a.expiresAt, expiresAt)
	a.keys, a.maxVisits, a.visited = append(a.keys, int64(l.Key)), append(a.maxVisits, l.MaxVisits), append(a.visited, l.visited)
	a.forwardQuery, a.showsTarget, a.deleted = append(a.forwardQuery, l.ForwardQuery), append(a.showsTarget, l.ShowsTarget), append(a.deleted, l.Deleted)
	a.directRedirect = append(a.directRedirect, l.DirectRedirect)
}

// rows is the arrays as a table, whose columns are linkColumns; arguments are its.
const rows = `unnest($1::text[], $2::bytea[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::bytea[], $7::bigint[],
	$8::bigint[], $9::boolean[], $10::boolean[], $11::bytea[], $12::text[], $13::boolean[], $14::bigint[], $15::boolean[])`

func (a *linkArrays) arguments() []any {
	return []any{a.slugs, a.destinations, a.createdAt, a.expiresAt, a.days, a.creators, a.keys,
		a.maxVisits, a.forwardQuery, a.showsTarget, a.tokens, a.takenDown, a.deleted, a.visited, a.directRedirect}
}

// possible reports whether there can be a link of the slug: others PostgreSQL may
// not even take as text.
func possible(slug shortener.Slug) bool {
	_, ok := shortener.ParseSlug(string(slug))
	return ok
}

// storable returns an error for a link that PostgreSQL would refuse, which would
// fail all that share its transaction.
func storable(l shortener.Link) error {
	if !possible(l.Slug) {
		return fmt.Errorf("%w: %q is no slug", shortener.ErrUnavailable, l.Slug)
	}
	return storableText(l.Day, l.TakenDown)
}

func storableText(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%w: %q cannot be stored", shortener.ErrUnavailable, text)
		}
	}
	return nil
}
