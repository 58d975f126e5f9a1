package boltquota_test

import (
	"testing"

	"go.etcd.io/bbolt"

	"snip/quota/boltquota"
	"snip/quota/quotatest"
)

func TestPackage(t *testing.T) {
	t.Parallel()
	quotatest.Run(t, func(t testing.TB) quotatest.Package[*bbolt.Tx] {
		db := openDB(t)
		return quotatest.Package[*bbolt.Tx]{
			View:          db.View,
			Update:        db.Update,
			Counts:        boltquota.Counts,
			Check:         boltquota.Check,
			Apply:         boltquota.Apply,
			Each:          boltquota.Each,
			Reserve:       boltquota.Reserve,
			Commit:        boltquota.Commit,
			Release:       boltquota.Release,
			Reservation:   boltquota.Reservation,
			List:          boltquota.List,
			SettleExpired: boltquota.SettleExpired,
			Sweep:         boltquota.Sweep,
		}
	})
}
