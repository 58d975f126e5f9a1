package boltstore

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"go.etcd.io/bbolt"

	"snip/quota"
	"snip/quota/boltquota"
	"snip/shortener"
)

// Report is what [Check] found in a file.
type Report struct {
	Format    uint64
	Links     int64 // tombstones too
	Deleted   int64 // of them
	TakenDown int64 // of them
	Limited   int64 // links whose visits are counted, for their limit
	Visited   int64 // links with statistics
	Entries   map[shortener.EntryKind]int64
	Acts      int64  // lines of the audit log
	Answers   int64  // to demands with an Idempotency-Key
	Newest    string // the newest day that has a counted link
	Days      []DayReport

	Reservations, Pending int64 // all of them, and those that are not settled

	Problems []string // what is wrong, up to a bound
	Hidden   int      // how many problems there are beyond
	Doubts   []string // what may be right
}

// DayReport compares a day's counters with its links.
type DayReport struct {
	Day   string
	Links int64 // charged to that day, tombstones too
	Keys  int64 // of them, made with API keys, which no network pays for
	Used  map[quota.Level]int64
}

// mostProblems bounds what a report tells.
const mostProblems = 20

// ErrDamaged is what [Report.Err] wraps.
var ErrDamaged = errors.New("the file is damaged")

// Err returns the problems as an error that wraps [ErrDamaged], or nil.
func (r *Report) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDamaged, strings.Join(r.Problems, "; "))
}

func (r *Report) problem(format string, values ...any) {
	if len(r.Problems) == mostProblems {
		r.Hidden++
		return
	}
	r.Problems = append(r.Problems, fmt.Sprintf(format, values...))
}

func (r *Report) doubt(format string, values ...any) {
	if len(r.Doubts) < mostProblems {
		r.Doubts = append(r.Doubts, fmt.Sprintf(format, values...))
	}
}

// Check reads a file that nobody has open, and changes nothing: its pages, every
// record, and whether the counters of each day that is kept are its links. The
// error is about a file that cannot be opened, or that is not Snip's; what is wrong
// with one that is, the report says.
//
// The destination of a link that is wrong and well-formed cannot be found.
func Check(path string) (r Report, err error) {
	if _, err := os.Stat(path); err != nil {
		return r, err
	}
	size, err := existing(path)
	if err != nil {
		return r, err
	}
	db, err := openBolt(path, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return r, explain(path, err)
	}
	defer db.Close() // nothing is written
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close()
	// Pages that have been checked cannot make bbolt panic; a disk that fails can.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			r.problem("reading it failed: %v", p)
		}
	}()
	err = db.View(func(tx *bbolt.Tx) error {
		if err := whole(tx, size); err != nil {
			return fmt.Errorf("%s %w", path, err)
		}
		if err := checkPages(tx, file); err != nil {
			r.problem("%v", err)
			return nil
		}
		if err := check(tx); err != nil {
			r.problem("%v", err)
			return nil
		}
		if r.Format, err = inspect(tx, size); err != nil {
			return fmt.Errorf("%s %w", path, err)
		}
		c := checker{Report: &r, tx: tx, made: map[string]*dayLinks{}}
		return c.all()
	})
	return r, err
}

// checker checks the records of a file whose pages are sound.
type checker struct {
	*Report
	tx      *bbolt.Tx
	numbers numbering
	made    map[string]*dayLinks // by day, of those whose counters are compared
}

// dayLinks are the links of a day.
type dayLinks struct {
	all, keys int64
	by        map[quota.Subject]int64
}

// all checks every bucket. Its errors are those of reading.
func (c *checker) all() error {
	known := map[string]func(*bbolt.Bucket) error{
		string(metaName):     nil, // first
		"days":               nil, // last
		"reservations":       nil, // then
		string(answersName):  c.answers,
		string(linksName):    c.links,
		string(visitsName):   c.visits,
		string(clicksName):   c.clicks,
		string(keyLinksName): c.keyLinks,
		string(operatorName): c.entries,
		string(auditName):    c.acts,
		string(outboxName):   c.notices,
		string(historyName):  c.history,
	}
	if err := c.meta(c.tx.Bucket(metaName)); err != nil {
		return err
	}
	days, err := boltquota.Periods(c.tx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if c.compared(day) {
			c.made[day] = &dayLinks{by: map[quota.Subject]int64{}}
		}
	}
	err = c.tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
		check, is := known[string(name)]
		if !is {
			c.doubt("the bucket %q is not known", name)
		}
		if check == nil {
			return nil
		}
		return check(bucket)
	})
	if err != nil {
		return err
	}
	for _, day := range days {
		c.day(day)
	}
	c.Reservations, c.Pending = boltquota.CheckReservations(c.tx, func(err error) { c.problem("%v", err) })
	if c.Newest != "" {
		if _, err := boltquota.Secret(c.tx, c.Newest); err != nil {
			c.problem("%s has counted links, but nothing more can be counted: %v", c.Newest, err)
		}
	}
	return nil
}

func (c *checker) meta(meta *bbolt.Bucket) (err error) {
	if c.Format > 1 { // before that, a link's key was its slug
		if c.numbers, err = newNumbering(meta.Get(slugKeyKey)); err != nil {
			c.problem("the key of its slugs: %v", err)
			c.numbers, err = newNumbering(newSlugKey())
		}
	}
	if _, err := reservedNumbers(meta); err != nil {
		c.problem("%v", err)
	}
	c.Newest = string(meta.Get(newestKey))
	if c.Newest != "" {
		if _, err := quota.DayBefore(c.Newest); err != nil {
			c.problem("the newest day: %v", err)
		}
	}
	return err
}

// compared reports whether a day's counters must be its links. Those of older days
// are being removed, and some may be gone. No link is charged to an hour or a month.
func (c *checker) compared(day string) bool {
	_, err := quota.DayBefore(day)
	return err == nil && quota.CheckClock(day, c.Newest) == nil
}

// day compares what was counted on a day with its links. Nothing says at which
// levels a link was charged: fewer counted than made is right where a level was off
// meanwhile, or where counters were removed because the clock was ahead. More is
// never right.
func (c *checker) day(day string) {
	if _, err := quota.ParseWindow(day); err != nil {
		c.problem("counters: %v", err)
		return
	}
	counters, err := boltquota.Counters(c.tx, day)
	if err != nil {
		c.problem("counters of %s: %v", day, err)
		return
	}
	if _, err := boltquota.Secret(c.tx, day); err != nil && !errors.Is(err, boltquota.ErrNoPeriod) {
		c.problem("%v", err)
	}
	made := c.made[day]
	if made == nil {
		return
	}
	report := DayReport{Day: day, Links: made.all, Keys: made.keys, Used: map[quota.Level]int64{}}
	for counter, count := range counters {
		used := count.Used
		report.Used[counter.Level] += used
		if counter.Level == quota.LevelClient {
			c.compare(fmt.Sprintf("%s: the client %x", day, counter.Subject), used, made.by[counter.Subject])
		}
	}
	c.Days = append(c.Days, report)
	c.compare(day+": the service", report.Used[quota.LevelService], made.all)
	// A link does not say in which network its maker was.
	c.compare(day+": all networks together", report.Used[quota.LevelNetwork], made.all-made.keys)
}

// compare judges a counter. One that is zero, or not there, is of a level that was off.
func (c *checker) compare(who string, used, made int64) {
	switch {
	case used > made:
		c.problem("%s paid for %d links, and there are %d", who, used, made)
	case used > 0 && used < made:
		c.doubt("%s paid for %d links, and there are %d: that is right only if its quota was off for a part of the day, or the clock had been ahead", who, used, made)
	}
}
