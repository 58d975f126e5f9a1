package pgquota_test

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"snip/quota"
	"snip/quota/pgquota"
)

// A message is stored if and only if its sender has one left: 20 an hour, and 300 a
// day for all. Any number of processes may run this at once.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return pgquota.Init(ctx, tx) })
	if err != nil {
		log.Fatal(err)
	}

	now := time.Now()
	day, hour := quota.DayOf(now), quota.HourOf(now)
	charges := []quota.Charge{
		{Counter: quota.Counter{Level: "all", Period: day.Label}, Cost: 1, Max: 300, ResetAt: day.End},
		{Counter: quota.Counter{Level: "person", Subject: "17", Period: hour.Label}, Cost: 1, Max: 20, ResetAt: hour.End},
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := pgquota.Apply(ctx, tx, charges); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO messages (sender, text) VALUES (17, 'hello')`)
		return err
	})
	switch {
	case err == nil:
		log.Print("counted and stored")
	case errors.Is(err, quota.ErrExceeded):
		log.Print("at the limit: ", err)
	default: // quota.ErrCannotCount, or the insert's: neither counted nor stored
		log.Print("refused, because it cannot be counted: ", err)
	}
}
