package shortener

import (
	"context"
	"fmt"
	"time"
)

// Expired says which links are to be cleared away, and how.
type Expired struct {
	Before time.Time // links that expired before this instant, which is not in the future
	DryRun bool      // whether they are counted and left alone
	Note   string    // for the audit log
	Mark   string    // where to begin, as a call before returned it; "" is at the start
}

// expiredChunk bounds the links that are deleted in one commit, and so how long a
// creation can wait behind it.
const expiredChunk = 250

// expiredPause follows each of those commits and each page, so that creations and
// redirects go on.
const expiredPause = 32 * time.Millisecond

// DeleteExpired deletes links that have expired, whether they are taken down or not:
// tombstones are left. A call looks at one page of links. It returns how many were
// deleted, or in a dry run are to be deleted, and the mark with which to go on; that is
// "" once all links were looked at. Each commit of a part of them has a line of its own
// in the audit log, and is followed by a pause. The errors are [ErrInvalidSelection], or
// wrap [ErrUnavailable]; some of the links may be deleted then.
func (s *Service) DeleteExpired(ctx context.Context, e Expired) (n int, next string, err error) {
	if e.Before.IsZero() || e.Before.After(s.now()) {
		return 0, "", fmt.Errorf("%w: links that expired before an instant that is not in the future are meant, not before %s",
			ErrInvalidSelection, e.Before.Format(time.RFC3339))
	}
	links, next, err := s.store.Scan(ctx, e.Mark, scanned)
	if err != nil {
		return 0, "", refusalOf(err)
	}
	expired := func(l Link) bool {
		return !l.Deleted && !l.ExpiresAt.IsZero() && l.ExpiresAt.Before(e.Before)
	}
	var slugs []Slug
	for _, m := range links {
		if expired(m.Link) {
			slugs = append(slugs, m.Link.Slug)
		}
	}
	if e.DryRun {
		rest(ctx)
		return len(slugs), next, nil
	}
	line := AuditLine{Action: "delete", Target: "expired before " + e.Before.UTC().Format(time.RFC3339), Note: e.Note}
	for len(slugs) > 0 {
		chunk := slugs[:min(expiredChunk, len(slugs))]
		// One may have got another expiry since it was read.
		done, err := s.act(ctx, Act{Line: line, Links: chunk, Meant: expired, Delete: true})
		n += done.Links
		if err != nil {
			return n, "", err
		}
		slugs = slugs[len(chunk):]
		rest(ctx)
	}
	rest(ctx)
	return n, next, nil
}

// rest waits for expiredPause, or until the context ends.
func rest(ctx context.Context) {
	timer := time.NewTimer(expiredPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
