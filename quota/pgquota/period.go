package pgquota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
)

// ErrNoPeriod means that a period has no secret, or none any more.
var ErrNoPeriod = errors.New("no such period")

// Secret returns the secret of a period, or [ErrNoPeriod] when it has none.
func Secret(ctx context.Context, q Querier, period string) (secret quota.Secret, err error) {
	if err := storable(quota.Counter{Period: period}); err != nil {
		return secret, err
	}
	rows, err := q.Query(ctx, `SELECT secret FROM quota_secrets WHERE period = $1`, period)
	if err != nil {
		return secret, cannot("read a secret", err)
	}
	raw, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]byte])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return secret, ErrNoPeriod
	case err != nil:
		return secret, cannot("read a secret", err)
	}
	return secretOf(period, raw)
}

func secretOf(period string, raw []byte) (secret quota.Secret, err error) {
	if len(raw) != len(secret) {
		return secret, fmt.Errorf("%w: the secret of %s has %d bytes, not %d", quota.ErrCannotCount, period, len(raw), len(secret))
	}
	copy(secret[:], raw)
	return secret, nil
}

// PutSecret stores the secret of a period that has none, and returns the one that
// the period has: another transaction may have been first. It lives and dies with
// the period's counters.
func PutSecret(ctx context.Context, tx pgx.Tx, period string, secret quota.Secret) (quota.Secret, error) {
	if err := storable(quota.Counter{Period: period}); err != nil {
		return secret, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO quota_secrets (period, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING`, period, secret[:]); err != nil {
		return secret, cannot("put a secret", err)
	}
	return Secret(ctx, tx, period)
}

// Sweep removes the secret and counters of the first period that ended at the
// instant before or earlier, at most limit counters. It reports whether anything
// was removed; calling it until it reports false removes them all, but for what
// others have locked meanwhile. The instant must be one to which no clock comes
// back.
func Sweep(ctx context.Context, tx pgx.Tx, before time.Time, limit int) (bool, error) {
	period, err := ended(ctx, tx, before)
	if period == "" || err != nil {
		return false, err
	}
	// The secret goes first: the subjects of a day that is over cannot be
	// recomputed, however long its counters take to go.
	secrets, err := tx.Exec(ctx, `DELETE FROM quota_secrets WHERE period = $1`, period)
	if err != nil {
		return false, cannot("remove a secret", err)
	}
	// It waits for nobody, or it would have to lock counters in their order.
	counters, err := tx.Exec(ctx, `DELETE FROM quota_counters c USING (
			SELECT period, level, subject FROM quota_counters WHERE period = $1 LIMIT $2 FOR UPDATE SKIP LOCKED
		) w WHERE c.period = w.period AND c.level = w.level AND c.subject = w.subject`, period, limit)
	if err != nil {
		return false, cannot("remove counters", err)
	}
	return secrets.RowsAffected()+counters.RowsAffected() > 0, nil
}

// ended returns the first period that ended at the instant or earlier, or "". It
// skips from period to period, however many counters each has. A label of no window
// is an error once nothing else is left to remove.
func ended(ctx context.Context, q Querier, before time.Time) (string, error) {
	rows, err := q.Query(ctx, `WITH RECURSIVE counted AS (
			SELECT min(period) AS period FROM quota_counters
			UNION ALL SELECT (SELECT min(period) FROM quota_counters WHERE period > counted.period) FROM counted WHERE period IS NOT NULL
		)
		SELECT period FROM counted WHERE period IS NOT NULL UNION SELECT period FROM quota_secrets ORDER BY period`)
	if err != nil {
		return "", cannot("look for periods", err)
	}
	labels, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", cannot("look for periods", err)
	}
	var unknown error
	for _, label := range labels {
		w, err := quota.ParseWindow(label)
		if err != nil {
			unknown = fmt.Errorf("%w: %w", quota.ErrCannotCount, err)
			continue
		}
		if !w.End.After(before) {
			return label, nil
		}
	}
	return "", unknown
}
