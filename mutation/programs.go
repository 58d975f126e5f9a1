package main

// programs are mutants of what lets several programs count in one PostgreSQL
// database.
func programs() []mutant {
	const (
		ledger  = "quota/pgquota/ledger.go"
		quotas  = "quota/pgquota/pgquota.go"
		create  = "shortener/pgstore/create.go"
		writer  = "shortener/pgstore/writer.go"
		store   = "shortener/pgstore/pgstore.go"
		manage  = "shortener/pgstore/manage.go"
		acts    = "shortener/pgstore/operator.go"
		cache   = "shortener/pgstore/cache.go"
		listen  = "shortener/pgstore/listen.go"
		migrate = "shortener/pgstore/migrations/001.sql"
	)
	return []mutant{
		{fault: "PostgreSQL: counters are read without a lock", file: ledger, test: "TestPackage/50_near_the_end_of_a_budget",
			from: "		FOR UPDATE OF c`", to: "`"},
		{fault: "PostgreSQL: counters are locked in any order", file: ledger, test: "TestNoDeadlock",
			from: "ORDER BY c.period, c.level, c.subject", to: "ORDER BY random()"},
		{fault: "PostgreSQL: new counters are made in any order", file: ledger, test: "TestNoDeadlockOfNewCounters",
			from: "slices.SortedFunc(maps.Keys(counters), order)", to: "append(slices.Collect(maps.Keys(counters)), slices.SortedFunc(maps.Keys(counters), order)[:0]...)"},
		{fault: "PostgreSQL: a counter is written whatever it holds by now", file: ledger, test: "TestRowThatChangesUnderItsLock",
			from: "\n			AND c.used = w.was_used AND c.held = w.was_held", to: ""},
		{fault: "PostgreSQL: a count that cannot be is counted on", file: quotas, test: "TestCannotCount/a_count_below_zero",
			from: "if count.Used < 0 || count.Held < 0 || count.Taken() < 0 {", to: "if false {"},

		{fault: "PostgreSQL: what another program has taken meanwhile is counted all the same", file: create, test: "TestRacesWithoutCounters",
			from: "if stored != n {", to: "if false {"},
		{fault: "PostgreSQL: whoever is full learns which slugs exist", file: create, test: "TestStore/the_order_of_the_checks",
			from: "if _, err := w.ledger.Check(c.Charges); err != nil {", to: "if _, err := w.ledger.Check(c.Charges); false {"},
		{fault: "PostgreSQL: a new day is written down under a shared lock", file: create, test: "TestStore/one_slug_has_one_owner",
			from: "			lock = \"FOR UPDATE\"\n			return errAgain\n", to: "			lock = \"FOR UPDATE\"\n"},
		{fault: "PostgreSQL: a commit whose answer was lost is taken for done", file: writer, test: "TestLostAnswer/before_it_is_sent",
			from: "			return lost\n", to: "			return nil\n"},
		{fault: "PostgreSQL: a commit whose answer was lost is done again", file: writer, test: "TestLostAnswer/after_it_is_sent",
			from: "err == nil && batch == w.batch:", to: "err == nil && batch == w.batch && false:"},
		{fault: "PostgreSQL: what no standby has is acknowledged", file: writer, test: "TestStandbyIsNotWaitedFor",
			from: "	case err == nil, warning != nil:\n		return warning\n", to: "	case err == nil:\n		return nil\n	case warning != nil:\n		return warning\n"},
		{fault: "PostgreSQL: a program that hangs stops all others", file: store, test: "TestHangingNeighbour",
			from: "\"idle_in_transaction_session_timeout\": \"5s\"", to: "\"idle_in_transaction_session_timeout\": \"0\""},
		{fault: "PostgreSQL: visits are counted without a lock", file: manage, test: "TestStore/a_limit_of_visits_is_exact",
			from: "ORDER BY slug FOR UPDATE`, slugs)", to: "ORDER BY slug`, slugs)"},
		{fault: "PostgreSQL: acts at once get one number", file: acts, test: "TestActsAtOnce",
			from: "SELECT pg_advisory_xact_lock($1)", to: "SELECT $1::bigint"},
		{fault: "PostgreSQL: slugs are in the order of a language", file: migrate, test: "TestOrderOfSlugs", room: "./shortener/pgstore",
			from: "slug          text COLLATE \"C\" PRIMARY KEY", to: "slug          text PRIMARY KEY"},

		{fault: "PostgreSQL: who has changed a link finds what it was", file: manage, test: "TestChangesElsewhere",
			from: "s.cache.invalidate(slugs...)", to: "_ = slugs"},
		{fault: "PostgreSQL: who has made a link does not find it", file: create, test: "TestChangesElsewhere",
			from: "s.cache.born(link.Slug)", to: "_ = link"},
		{fault: "PostgreSQL: what was read before a change is served after it", file: cache, test: "TestCacheIsNotLate",
			from: "there = there && r.generation == changed", to: "there = there && r.generation <= changed"},
		{fault: "PostgreSQL: what was read is served for ever when nothing is heard", file: cache, test: "TestCacheWithListener",
			from: "h != nil && h.epoch == r.epoch && now.Sub(h.at) < life", to: "h != nil && h.epoch == r.epoch"},
		{fault: "PostgreSQL: what was not heard between two connections is missed", file: cache, test: "TestCacheWithListener",
			from: "h.epoch == r.epoch && ", to: ""},
		{fault: "PostgreSQL: links end with the database", file: cache, test: "TestLinksOutliveTheDatabase",
			from: "errors.Is(result.Err, shortener.ErrUnavailable) && there", to: "false && there"},
		{fault: "PostgreSQL: an act on many links is not told to other programs", file: listen, test: "TestChangesElsewhere",
			from: "			s.cache.invalidateAll()\n", to: ""},
	}
}
