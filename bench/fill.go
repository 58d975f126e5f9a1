package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"snip/shortener"
	"snip/shortener/boltstore"
)

// links are those of a file that was filled, by number.
type links struct {
	count    int
	slugs    []byte // of all, one after the other
	unknowns []byte // slugs that none has
}

const slugLength = shortener.GeneratedSlug

func nth(slugs []byte, i int) string { return string(slugs[i*slugLength : (i+1)*slugLength]) }

func (l *links) slug(i int) string { return nth(l.slugs, i) }

// few links are what everybody follows on a busy day.
const few = 10

// hot is the i-th of the few, which lie all over the file.
func (l *links) hot(i int) string { return l.slug(i * l.count / few) }

// unknownSlugs is how many slugs that no link has are drawn for a file.
const unknownSlugs = 100_000

// unknown is a slug that no link has and that would lie anywhere in the file.
func (l *links) unknown(i int) string { return nth(l.unknowns, i%unknownSlugs) }

// mostLinks is how many destinations of one length there are.
const mostLinks = 10_000_000

func destination(i int) string { return fmt.Sprintf("https://example.org/articles/2026/%07d", i) }

// fill makes a data file with so many links, unless it is there already. Making
// them by requests would take many minutes, so they are made with the server's own
// store, without quotas; the server then has to find them.
func (b *bench) fill(ctx context.Context, name string, count int) (*links, error) {
	if l := b.filled[name]; l != nil {
		return l, nil
	}
	fmt.Fprintf(os.Stderr, "making a file of %s links\n", whole(float64(count)))
	store, err := boltstore.Open(filepath.Join(b.dir, name), boltstore.Options{})
	if err != nil {
		return nil, err
	}
	l := &links{count: count}
	if err := errors.Join(l.make(ctx, store), store.Close()); err != nil {
		return nil, fmt.Errorf("filling %s: %w", name, err)
	}
	b.filled[name] = l
	return l, b.checkFilled(ctx, name, l)
}

// make stores the links, and draws slugs that none of them has.
func (l *links) make(ctx context.Context, store *boltstore.Store) error {
	const atOnce = 1000
	day := time.Now().UTC()
	for made := 0; made < l.count; {
		part := make([]shortener.Link, min(atOnce, l.count-made))
		for i := range part {
			part[i] = shortener.Link{
				Slug:        store.NewSlug(),
				Destination: destination(made + i),
				CreatedAt:   day,
				Day:         day.Format(time.DateOnly),
				Creator:     "0123456789abcdef", // as long as a real one
			}
			l.slugs = append(l.slugs, part[i].Slug...)
		}
		if err := store.Create(ctx, shortener.Creation{Links: part}); err != nil {
			return err
		}
		made += len(part)
	}
	for len(l.unknowns) < unknownSlugs*slugLength {
		slug := shortener.RandomSlug()
		switch _, err := store.Get(ctx, slug); {
		case errors.Is(err, shortener.ErrNotFound):
			l.unknowns = append(l.unknowns, slug...)
		case err != nil:
			return err
		}
	}
	return nil
}

// checkFilled follows some of the links, from first to last, and some that are not
// there.
func (b *bench) checkFilled(ctx context.Context, name string, l *links) error {
	snip, err := b.startSnip(ctx, name, unlimited...)
	if err != nil {
		return err
	}
	defer snip.kill()
	const samples = 100
	for k := range samples {
		i := k * (l.count - 1) / (samples - 1)
		if err := snip.follows(ctx, l.slug(i), destination(i)); err != nil {
			return err
		}
		a, err := request(ctx, http.MethodGet, snip.url+"/"+l.unknown(k), "")
		if err == nil && a.Status != http.StatusNotFound {
			err = fmt.Errorf("%s should be unknown, but its status is %d", l.unknown(k), a.Status)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
