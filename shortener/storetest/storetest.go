// Package storetest is the contract of [shortener.Store] as a suite that every
// store passes, with benchmarks that compare them.
//
// Call [Run] and [Benchmark] from the store's own tests.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"snip/quota"
	"snip/shortener"
)

// Open returns several handles on one empty data set, closed when the test ends.
// A store that has only one handle on its data returns it twice. The first may be
// a [Restarter].
type Open func(testing.TB) []shortener.Store

// Run tests the contract.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		test func(*testing.T, []shortener.Store)
	}{
		{"a link comes back as it was given", testRoundTrip},
		{"a day has one secret", testSecret},
		{"a limit of visits is exact", testVisits},
		{"a change is seen by whoever comes after it", testChange},
		{"a deleted link stays deleted", testDelete},
		{"visits add up", testClicks},
		{"what operators set comes and goes", testEntries},
		{"a link that is taken down cannot be changed", testTakeDown},
		{"the audit log has every act", testAudit},
		{"an act is done in view of what it is based on", testActIf},
		{"of acts on one entry at once one is done", testActRace},
		{"links that are no longer meant are left alone", testActMeant},
		{"an accepted clock is in the audit log", testAcceptClock},
		{"who acts on a key acts on the one that was meant", testKeyMeanwhile},
		{"a scan meets every link", testScan},
		{"a share of the budget is told once", testBudget},
		{"a notice waits until it is delivered", testPost},
		{"a day is tallied and kept", testHistory},
		{"links and refusals around midnight are on their days", testMidnight},
		{"a day is closed before its counters go", testDayIsClosed},
		{"links are tallied whichever levels are off", testTallied},
		{"links are known by the hour, over all servers", testHours},
		{"links of the past are charged to nobody", testImported},
		{"the busiest of a day come first", testBusiest},
		{"a key lists its links", testLinksOf},
		{"generated slugs are new and cannot be guessed", testNewSlug},
		{"the fifty-first is refused", testJourney},
		{"a refusal at one level leaves all levels alone", testLevels},
		{"the last part is for newcomers", testNewcomers},
		{"a taken slug costs nothing", testTakenSlug},
		{"the order of the checks", testOrder},
		{"several links are one decision", testBatch},
		{"a limit of zero and charges that make no sense", testOddCharges},
		{"a day ends lazily and continues when the clock goes back", testDays},
		{"a clock more than a day behind is not trusted", testClock},
		{"a creation whose request has gone is withdrawn", testCancelled},
		{"the last unit has one taker", testLastUnit},
		{"one slug has one owner", testSlugRace},
		{"a secret is made once", testSecretRace},
		{"counters equal links under load", testLoad},
		{"B3 many near the end of a budget", testNearTheEnd},
		{"B7 held and used never exceed a maximum", testInvariant},
		{"B8 what is held is nobody else's", testHeld},
		{"B10 a counter that is not there yet holds nothing", testFreshCounter},
		{"B12 what was not spent comes back", testActual},
		{"B13 settling again changes nothing", testSettledTwice},
		{"B15 refusals at one level do not hold another", testNoHalfHold},
		{"B19 the three rows of reserving", testReserveTable},
		{"B21 a commit may pass the maximum", testCommitAbove},
		{"B22 an overrun is recorded, told and refuses the next", testOverrun},
		{"B23 stuck reservations are settled, and thresholds told once", testStuck},
		{"B24 two of fifty fit", testTwoFit},
		{"B25 one of two gets the last unit", testLastHeld},
		{"B26 the fourth of five levels is full", testFourthFull},
		{"B27a a retry finds its reservation", testRetryFinds},
		{"B27b a commit counts where it was reserved", testStoredCharges},
		{"B27c one reservation holds several levels and windows", testSeveralLevels},
		{"B27d an unknown outcome is charged in full", testExpiry},
		{"B27e a reservation is whole after a restart", testRestartedHold},
		{"a reservation that makes no sense holds nothing", testOddReservations},
		{"a withdrawn reservation holds nothing", testWithdrawnHold},
		{"expired reservations are settled some at a time", testSettleSome},
		{"a reservation is settled after its window has gone", testSweptWindow},
		{"an overrun is told before what is held expires", testExpiredOverrun},
		{"a limit that was raised is not overrun", testRaised},
		{"a cost that comes after expiry is counted and told", testLate},
		{"batches at once share what is left", testBatchRace},
		{"all slugs that are taken are named", testTakenSlugs},
		{"an answer is kept with its links or not at all", testAnswer},
		{"a creation that was done is answered again", testReplay},
		{"an answer holds for a day", testAnswerHolds},
		{"one of twenty tries makes the link", testAnswerRace},
		{"an answer is kept as long as its day", testAnswerKept},
		{"an order explains the answers of callers at once", testLinear},
		{"an order explains what reservations are told", testLinearHolds},
		{"random reservations agree with sums", testHolds},
		{"random operations agree with a plain map", testModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

// noon is the decision's instant of tests in which time does not matter.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// policy is the default one.
var policy = quota.Policy{Client: 50, Network: 250, Service: 1000, Newcomers: 100}

// host returns the client with the n-th address of a network of its own.
func host(network, n int) quota.Client {
	return quota.ClientOf(netip.AddrFrom4([4]byte{10, byte(network >> 8), byte(network), byte(n)}))
}

// maker makes links in one store for tests.
type maker struct {
	testing.TB
	store  shortener.Store
	policy quota.Policy
}

// creation returns the demand of who at the instant now for links with the slugs.
func (m maker) creation(who quota.Client, now time.Time, slugs ...string) shortener.Creation {
	m.Helper()
	day := quota.DayOf(now)
	secret, err := m.store.EnsureSecret(context.Background(), day.Label)
	if err != nil {
		m.Fatalf("EnsureSecret(%s): %v", day.Label, err)
	}
	c := shortener.Creation{
		Day:     day.Label,
		Charges: m.policy.Charges(who, secret, day, int64(len(slugs))),
	}
	for _, slug := range slugs {
		c.Links = append(c.Links, shortener.Link{
			Slug:        shortener.Slug(slug),
			Destination: "https://example.org/" + slug,
			CreatedAt:   now,
			Day:         day.Label,
			Creator:     who.Creator(secret),
		})
	}
	return c
}

func (m maker) create(who quota.Client, now time.Time, slugs ...string) error {
	m.Helper()
	return m.store.Create(context.Background(), m.creation(who, now, slugs...))
}

// used returns what the levels of who hold at the instant now, widest first.
func (m maker) used(who quota.Client, now time.Time) []int64 {
	m.Helper()
	c := m.creation(who, now)
	counters := make([]quota.Counter, len(c.Charges))
	for i, charge := range c.Charges {
		counters[i] = charge.Counter
	}
	counts, err := m.store.Counts(context.Background(), counters)
	if err != nil {
		m.Fatalf("Counts: %v", err)
	}
	return quota.Taken(counts)
}

// wantUsed asserts what the service, network and client counters hold.
func (m maker) wantUsed(who quota.Client, now time.Time, want ...int64) {
	m.Helper()
	if got := m.used(who, now); fmt.Sprint(got) != fmt.Sprint(want) {
		m.Errorf("used by %v: got %v, want %v", who, got, want)
	}
}

// wantLinks asserts how many of the slugs lead somewhere.
func (m maker) wantLinks(want int, slugs ...string) {
	m.Helper()
	got := 0
	for _, slug := range slugs {
		switch _, err := m.store.Get(context.Background(), shortener.Slug(slug)); {
		case err == nil:
			got++
		case !errors.Is(err, shortener.ErrNotFound):
			m.Errorf("Get(%s): %v", slug, err)
		}
	}
	if got != want {
		m.Errorf("got %d links of %d, want %d", got, len(slugs), want)
	}
}

// wantLevel asserts that err is a refusal by the level.
func wantLevel(t testing.TB, err error, level quota.Level) {
	t.Helper()
	var exceeded *quota.ExceededError
	if !errors.As(err, &exceeded) || exceeded.Usage.Level != level {
		t.Errorf("got error %v, want a refusal at level %s", err, level)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// names returns n slugs that begin with prefix.
func names(prefix string, n int) []string {
	slugs := make([]string, n)
	for i := range slugs {
		slugs[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return slugs
}
