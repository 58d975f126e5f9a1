package boltquota

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"

	"snip/quota"
)

var (
	// reservationsName is the bucket of reservations.
	reservationsName = []byte("reservations")
	// dueName is the bucket in it that says when something is to be done about which
	// of them: settle one that has expired, or forget one that was settled. Its keys
	// are the instant in microseconds since 1970, 8 bytes, big-endian, and the id.
	dueName = []byte("due")
	idsName = []byte("ids") // the bucket in it of the reservations by their ids, in CBOR
)

// Reserve holds what the reservation may cost, by [quota.Reservation.Reserve], and
// returns it as pending. Where one of its id is there it returns that, pending or
// settled, with already true, and holds nothing more: whoever has lost the answer
// to a first attempt goes on with what it began. With an error nothing is held and
// nothing of it is left; an error of the write itself, which is none of quota's,
// leaves the transaction half done.
func Reserve(tx *bbolt.Tx, r quota.Reservation) (stored quota.Reservation, already bool, err error) {
	if err := r.Validate(); err != nil {
		return r, false, err
	}
	found, err := Reservation(tx, r.ID)
	if !errors.Is(err, quota.ErrNoReservation) {
		return found, err == nil, err
	}
	counts, err := Counts(tx, countersIn(r.Charges))
	if err != nil {
		return r, false, err
	}
	r, after, err := r.Reserve(counts)
	if err != nil {
		return r, false, err
	}
	if err := write(tx, r.Charges, after); err != nil {
		return r, false, err
	}
	return r, false, put(tx, r)
}

// Commit counts what the work has cost, as [quota.Reservation.Commit] has it, in
// the windows in which it was reserved. What was settled before stays as it is, and
// is returned. counts are what the counters of its charges hold afterwards. Errors
// are as for [Reserve], and [quota.ErrNoReservation].
func Commit(tx *bbolt.Tx, id string, actual []int64, at time.Time) (r quota.Reservation, counts []quota.Count, err error) {
	return settle(tx, id, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Commit(counts, actual, at)
	})
}

// Release gives back what was reserved. It is otherwise like [Commit].
func Release(tx *bbolt.Tx, id string, at time.Time) (quota.Reservation, []quota.Count, error) {
	return settle(tx, id, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Release(counts, at)
	})
}

// SettleExpired settles up to limit reservations, one at least, that have expired at
// the instant now, each as it says itself, and forgets those that were settled long
// ago. It calls settled, unless that is nil, with each of the first, and what its
// counters hold afterwards. It reports whether it has done anything; calling it until
// it reports false does all there is to do.
//
// Those that cannot be read or settled stay as they are and keep what they hold. What
// is wrong with them is the error of the call that finds nothing else to do, as
// [quota.ErrCannotCount]: nothing is lost when its transaction is rolled back. Other
// errors, those of settled too, leave the transaction half done.
func SettleExpired(tx *bbolt.Tx, now time.Time, limit int, settled func(quota.Reservation, []quota.Count) error) (bool, error) {
	_, dues, err := reservationBuckets(tx)
	if dues == nil {
		return false, err
	}
	var wrong []error
	done := 0
	end := dueKey(now.Add(time.Microsecond), "")
	cursor := dues.Cursor()
	first, _ := cursor.First()
	for key := bytes.Clone(first); key != nil && bytes.Compare(key, end) < 0 && done < max(1, limit); {
		r, counts, err := settleDue(tx, key, now)
		switch {
		case errors.Is(err, quota.ErrCannotCount):
			wrong = append(wrong, err)
		case err != nil:
			return false, err
		default:
			done++
			if settled == nil || counts == nil {
				break
			}
			if err := settled(r, counts); err != nil {
				return false, err
			}
		}
		// It may be gone by now, and the cursor's place with it.
		next, _ := cursor.Seek(key)
		if bytes.Equal(next, key) {
			next, _ = cursor.Next()
		}
		key = bytes.Clone(next)
	}
	if done > 0 {
		return true, nil
	}
	return false, errors.Join(wrong...)
}

// settleDue does what is due at a key of the bucket of that name. There are no counts
// where that was to forget.
func settleDue(tx *bbolt.Tx, key []byte, now time.Time) (quota.Reservation, []quota.Count, error) {
	r, err := dueAt(tx, key)
	if err != nil {
		return r, nil, err
	}
	if r.State != quota.Pending {
		return r, nil, forget(tx, r)
	}
	return settle(tx, r.ID, func(r quota.Reservation, counts []quota.Count) (quota.Reservation, []quota.Count, error) {
		return r.Expire(counts, now)
	})
}

// List returns up to n reservations, in the order in which something is to be done
// about them: settle those that are pending when they expire, and forget the others.
// One that cannot be read is [quota.ErrCannotCount].
func List(tx *bbolt.Tx, n int) (list []quota.Reservation, err error) {
	_, dues, err := reservationBuckets(tx)
	if dues == nil {
		return nil, err
	}
	cursor := dues.Cursor()
	for key, _ := cursor.First(); key != nil && len(list) < n; key, _ = cursor.Next() {
		r, err := dueAt(tx, key)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// dueAt returns the reservation to which a key of the bucket of what is due leads.
func dueAt(tx *bbolt.Tx, key []byte) (quota.Reservation, error) {
	if len(key) <= instantSize {
		return quota.Reservation{}, fmt.Errorf("%w: what is due at %x is no reservation", quota.ErrCannotCount, key)
	}
	id := string(key[instantSize:])
	r, err := Reservation(tx, id)
	if errors.Is(err, quota.ErrNoReservation) {
		err = fmt.Errorf("%w: reservation %q is due and missing", quota.ErrCannotCount, id)
	}
	if err == nil && !bytes.Equal(key, dueKey(r.Due(), id)) {
		err = fmt.Errorf("%w: reservation %q is due at another instant", quota.ErrCannotCount, id)
	}
	return r, err
}

// Reservation returns the reservation that has the id, or [quota.ErrNoReservation].
func Reservation(tx *bbolt.Tx, id string) (quota.Reservation, error) {
	ids, _, err := reservationBuckets(tx)
	if err != nil {
		return quota.Reservation{}, err
	}
	var raw []byte
	if ids != nil {
		raw = ids.Get([]byte(id))
	}
	if raw == nil {
		return quota.Reservation{}, quota.ErrNoReservation
	}
	r, err := decodeReservation(id, raw)
	if err != nil {
		return r, fmt.Errorf("%w: reservation %q: %w", quota.ErrCannotCount, id, err)
	}
	return r, nil
}

// reservationBuckets returns the buckets of reservations, which are made with the
// first of them, or nil where there never was one.
func reservationBuckets(tx *bbolt.Tx) (ids, dues *bbolt.Bucket, err error) {
	root := tx.Bucket(reservationsName)
	if root == nil {
		return nil, nil, nil
	}
	ids, dues = root.Bucket(idsName), root.Bucket(dueName)
	if ids == nil || dues == nil {
		return nil, nil, fmt.Errorf("%w: a bucket of %q is missing", quota.ErrCannotCount, reservationsName)
	}
	return ids, dues, nil
}

// settle makes of a reservation that is not settled what become says.
func settle(tx *bbolt.Tx, id string, become func(quota.Reservation, []quota.Count) (quota.Reservation, []quota.Count, error)) (quota.Reservation, []quota.Count, error) {
	r, err := Reservation(tx, id)
	if err != nil {
		return r, nil, err
	}
	counts, err := Counts(tx, countersIn(r.Charges))
	if err != nil {
		return r, nil, err
	}
	// What a window that has been swept held went with it, and decides nothing more.
	swept := make([]bool, len(counts))
	for i, c := range r.Charges {
		if isSwept(tx, c.Counter.Period) && !r.Settled() {
			swept[i], counts[i] = true, r.Stands(i)
		}
	}
	settled, after, err := become(r, counts)
	if err != nil || r.Settled() {
		return settled, after, err
	}
	for i, c := range settled.Charges {
		if swept[i] {
			continue
		}
		if err := write(tx, []quota.Charge{c}, after[i:i+1]); err != nil {
			return settled, nil, err
		}
	}
	if err := forget(tx, r); err != nil {
		return settled, nil, err
	}
	return settled, after, put(tx, settled)
}

func put(tx *bbolt.Tx, r quota.Reservation) error {
	raw, err := encodeReservation(r)
	if err != nil {
		return err
	}
	root, err := tx.CreateBucketIfNotExists(reservationsName)
	if err != nil {
		return err
	}
	ids, err := root.CreateBucketIfNotExists(idsName)
	if err != nil {
		return err
	}
	dues, err := root.CreateBucketIfNotExists(dueName)
	if err != nil {
		return err
	}
	return errors.Join(ids.Put([]byte(r.ID), raw), dues.Put(dueKey(r.Due(), r.ID), nil))
}

// forget removes a reservation as it was read.
func forget(tx *bbolt.Tx, r quota.Reservation) error {
	ids, dues, err := reservationBuckets(tx)
	if err != nil {
		return err
	}
	return errors.Join(ids.Delete([]byte(r.ID)), dues.Delete(dueKey(r.Due(), r.ID)))
}

// instantSize is the length of the instant in a key of the bucket of what is due.
const instantSize = 8

func dueKey(at time.Time, id string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())), id...)
}

// recordVersion is what this package writes; a record with another is not guessed at.
const recordVersion = 1

// reservationRecord is how a reservation is kept. Numbers name the fields: they are
// never reused. Times are microseconds since 1970.
type reservationRecord struct {
	Version   uint           `cbor:"0,keyasint"`
	Charges   []chargeRecord `cbor:"1,keyasint"`
	ExpiresAt int64          `cbor:"2,keyasint"`
	OnExpiry  quota.State    `cbor:"3,keyasint"`
	State     quota.State    `cbor:"4,keyasint"`
	Actual    []int64        `cbor:"5,keyasint,omitempty"`
	CreatedAt int64          `cbor:"6,keyasint,omitempty"` // 0 is unknown, as in records of earlier programs
	UpdatedAt int64          `cbor:"7,keyasint,omitempty"`
	Expired   bool           `cbor:"8,keyasint,omitempty"`
}

type chargeRecord struct {
	Level    quota.Level `cbor:"0,keyasint"`
	Subject  []byte      `cbor:"1,keyasint,omitempty"` // not always text
	Period   string      `cbor:"2,keyasint"`
	Cost     int64       `cbor:"3,keyasint"`
	Max      int64       `cbor:"4,keyasint"`
	Reserved int64       `cbor:"5,keyasint,omitempty"`
	DryRun   bool        `cbor:"6,keyasint,omitempty"`
	ResetAt  int64       `cbor:"7,keyasint"`
}

func encodeReservation(r quota.Reservation) ([]byte, error) {
	record := reservationRecord{
		Version: recordVersion, ExpiresAt: r.ExpiresAt.UnixMicro(), OnExpiry: r.OnExpiry, State: r.State, Actual: r.Actual,
		CreatedAt: micros(r.CreatedAt), UpdatedAt: micros(r.UpdatedAt), Expired: r.Expired,
	}
	for _, c := range r.Charges {
		record.Charges = append(record.Charges, chargeRecord{
			c.Counter.Level, []byte(c.Counter.Subject), c.Counter.Period, c.Cost, c.Max, c.Reserved, c.DryRun, c.ResetAt.UnixMicro(),
		})
	}
	return cbor.Marshal(record)
}

// micros is an instant as it is kept; 0 is none.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// instant is the inverse of micros.
func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func decodeReservation(id string, raw []byte) (quota.Reservation, error) {
	var record reservationRecord
	if err := cbor.Unmarshal(raw, &record); err != nil {
		return quota.Reservation{}, err
	}
	if record.Version != recordVersion {
		return quota.Reservation{}, fmt.Errorf("version %d is not known", record.Version)
	}
	r := quota.Reservation{
		ID: id, ExpiresAt: time.UnixMicro(record.ExpiresAt).UTC(), OnExpiry: record.OnExpiry, State: record.State, Actual: record.Actual,
		CreatedAt: instant(record.CreatedAt), UpdatedAt: instant(record.UpdatedAt), Expired: record.Expired,
	}
	for _, c := range record.Charges {
		r.Charges = append(r.Charges, quota.Charge{
			Counter: quota.Counter{Level: c.Level, Subject: quota.Subject(c.Subject), Period: c.Period},
			Cost:    c.Cost, Max: c.Max, Reserved: c.Reserved, DryRun: c.DryRun, ResetAt: time.UnixMicro(c.ResetAt).UTC(),
		})
	}
	return r, r.ValidateStored()
}
