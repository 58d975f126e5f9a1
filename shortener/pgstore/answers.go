package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"snip/quota"
	"snip/shortener"
)

// answerArrays are answers column by column.
type answerArrays struct {
	days   []string
	ids    [][]byte
	at     []time.Time
	sealed [][]byte
}

func (a *answerArrays) refer(refs ...shortener.AnswerRef) {
	for _, ref := range refs {
		a.days, a.ids = append(a.days, ref.Day), append(a.ids, bytes.Clone(ref.ID[:]))
	}
}

const selectAnswers = `SELECT a.day, a.id, a.at, a.sealed FROM unnest($1::text[], $2::bytea[]) AS w(day, id)
	JOIN answers a ON a.day = w.day AND a.id = w.id`

func scanAnswer(row pgx.CollectableRow) (a shortener.Answer, err error) {
	var id []byte
	if err := row.Scan(&a.Day, &id, &a.At, &a.Sealed); err != nil {
		return a, err
	}
	a.At = a.At.UTC()
	if copy(a.ID[:], id) != len(a.ID) {
		return a, fmt.Errorf("the id of an answer of %s has %d bytes, not %d", a.Day, len(id), len(a.ID))
	}
	return a, nil
}

// queueAnswers keeps answers in place of those that are outdated.
func queueAnswers(batch *pgx.Batch, answers map[shortener.AnswerRef]shortener.Answer, outdated []shortener.AnswerRef) {
	if len(answers) == 0 {
		return
	}
	var old, kept answerArrays
	if old.refer(outdated...); len(outdated) > 0 {
		batch.Queue(`DELETE FROM answers a USING unnest($1::text[], $2::bytea[]) AS w(day, id) WHERE a.day = w.day AND a.id = w.id`, old.days, old.ids)
	}
	order := func(a, b shortener.AnswerRef) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), bytes.Compare(a.ID[:], b.ID[:]))
	}
	for _, ref := range slices.SortedFunc(maps.Keys(answers), order) {
		kept.refer(ref)
		kept.at, kept.sealed = append(kept.at, answers[ref].At), append(kept.sealed, answers[ref].Sealed)
	}
	queueAll(batch, len(answers), `INSERT INTO answers (day, id, at, sealed)
		SELECT * FROM unnest($1::text[], $2::bytea[], $3::timestamptz[], $4::bytea[])
		ON CONFLICT DO NOTHING RETURNING id`, kept.days, kept.ids, kept.at, kept.sealed)
}

// Answer implements [shortener.Store].
func (s *Store) Answer(ctx context.Context, refs []shortener.AnswerRef) (shortener.Answer, error) {
	if len(refs) == 0 {
		return shortener.Answer{}, shortener.ErrNotFound
	}
	var wanted answerArrays
	wanted.refer(refs...)
	found, err := query(ctx, s, "read answers", scanAnswer, selectAnswers, wanted.days, wanted.ids)
	if err != nil {
		return shortener.Answer{}, err
	}
	for _, ref := range refs {
		if i := slices.IndexFunc(found, func(a shortener.Answer) bool { return a.AnswerRef == ref }); i >= 0 {
			return found[i], nil
		}
	}
	return shortener.Answer{}, shortener.ErrNotFound
}

// sweepAnswers removes up to limit answers of days before keep, and returns how many.
func sweepAnswers(ctx context.Context, tx pgx.Tx, keep string, limit int) (int64, error) {
	if _, err := quota.ParseWindow(keep); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM answers a USING (SELECT day, id FROM answers WHERE day < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) w
		WHERE a.day = w.day AND a.id = w.id`, keep, limit)
	return tag.RowsAffected(), err
}
