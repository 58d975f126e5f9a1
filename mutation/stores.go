package main

// stores are mutants of the place where link and count meet.
func stores() []mutant {
	const (
		store    = "shortener/boltstore/boltstore.go"
		writer   = "shortener/boltstore/writer.go"
		sweep    = "shortener/boltstore/sweep.go"
		recovery = "shortener/boltstore/recovery.go"
		cache    = "shortener/boltstore/cache.go"
		manage   = "shortener/boltstore/manage.go"
		today    = "shortener/boltstore/today.go"
		acts     = "shortener/boltstore/operator.go"

		numbering = "shortener/boltstore/numbering.go"
		memory    = "shortener/memstore/memstore.go"

		counts = "\tfor i, charge := range c.Charges {\n\t\tcounts[i].Used += charge.Cost\n\t}\n\ts.putCounts(c.Charges, counts)\n"
		slugs  = "\tif taken != nil {\n\t\treturn &shortener.SlugTakenError{Slugs: taken}\n\t}\n"
	)
	return []mutant{
		{fault: "a taken slug is counted", file: memory, test: "TestStore/a_taken_slug_costs_nothing",
			from: slugs + counts, to: counts + slugs},
		{fault: "limits are compared under one lock and counted under another", file: memory, test: "TestStore/an_order_explains_the_answers_of_callers_at_once",
			from: "\tvar taken []shortener.Slug\n", to: "\ts.mu.Unlock()\n\tyield := make(chan int)\n\tgo close(yield)\n\t<-yield\n\ts.mu.Lock()\n\tvar taken []shortener.Slug\n"},

		{fault: "a taken slug is counted beside a neighbour that is stored", file: store, test: "TestNeighbours/a_taken_slug_costs_nothing",
			from: "boltquota.Check(tx, c.Charges)", to: "boltquota.Apply(tx, c.Charges)"},
		{fault: "whoever is full learns which slugs exist", file: store, test: "TestStore/the_order_of_the_checks",
			from: "if _, err := boltquota.Check(tx, c.Charges); err != nil {", to: "if err != nil {"},
		{fault: "a taken slug is given to another", file: store, test: "TestStore/one_slug_has_one_owner",
			from: "links.Get(keys[i]) != nil {", to: "links.Get(keys[i]) != nil && false {"},
		{fault: "a link is stored without its charges", file: store, test: "TestStore/the_fifty-first_is_refused",
			from: "boltquota.Apply(tx, c.Charges)", to: "boltquota.Check(tx, c.Charges)"},
		{fault: "the clock is not checked in the transaction", file: store, test: "TestStore/a_clock_more_than_a_day_behind_is_not_trusted",
			from: "newest, err := checkClock(tx, c.Day)", to: "newest, err := newestDay(tx)"},
		{fault: "the newest day is not written down", file: store, test: "TestStore/a_clock_more_than_a_day_behind_is_not_trusted",
			from: "if c.Day > newest {", to: "if c.Day > newest && false {"},
		{fault: "the newest day goes back with the clock", file: store, test: "TestStore/random_operations_agree_with_a_plain_map",
			from: "if c.Day > newest {", to: "if c.Day != newest {"},
		{fault: "a clock far behind is accepted without being asked", file: store, test: "TestAcceptClock",
			from: "\tif err != nil {\n\t\treturn \"\", err\n\t}\n\treturn newest, quota.CheckClock(day, newest)", to: "\treturn newest, err"},
		{fault: "accepting a clock forgets the newest day although the clock is right", file: acts, test: "TestStore/an_accepted_clock_is_in_the_audit_log",
			from: "case errors.Is(err, quota.ErrClock):", to: "case err == nil || errors.Is(err, quota.ErrClock):"},
		{fault: "a day whose secret is gone is given a new one", file: store, test: "TestCannotCount",
			from: "if day == newest {", to: "if day == newest && false {"},
		{fault: "the second of two who make a secret replaces the first's", file: store, test: "TestStore/a_secret_is_made_once",
			from: "if !errors.Is(err, boltquota.ErrNoPeriod) {\n\t\t\treturn err // another", to: "if false {\n\t\t\treturn err // another"},
		{fault: "half an operation is kept when a put fails", file: store, test: "TestNeighbours/a_link_that_cannot_be_put_fails_all",
			from: "c.Links[i], records[i]); err != nil {\n\t\t\treturn torn(err)", to: "c.Links[i], records[i]); err != nil {\n\t\t\treturn err"},
		{fault: "a counter that cannot be read is not unavailable", file: "shortener/store.go", room: "./shortener/boltstore", test: "TestCannotCount",
			from: "if !uncounted || errors.Is(err, ErrUnavailable) {", to: "if !uncounted || true {"},

		{fault: "a clock that was right once is trusted for ever", file: today, test: "TestStore/a_clock_more_than_a_day_behind_is_not_trusted",
			from: "{ c.generation.Add(1) }", to: "{}"},

		{fault: "a restart generates the slugs of links that are there", file: numbering, test: "TestStore/generated_slugs_are_new_and_cannot_be_guessed",
			from: "if next <= reserved {", to: "if reserved >= 0 {"},
		{fault: "generated slugs follow each other", file: numbering, test: "TestStore/generated_slugs_are_new_and_cannot_be_guessed",
			from: "rounds     = 10", to: "rounds     = 0"},
		{fault: "a generated slug spells a word", file: numbering, test: "TestStore/generated_slugs_are_new_and_cannot_be_guessed",
			from: "!shortener.SpellsWord(slug) {", to: "true {"},
		{fault: "numbers begin anew after an old backup is restored", file: numbering, test: "TestNumbersGoOn",
			from: "uint64(max(passed, 0))", to: "uint64(passed * 0)"},
		{fault: "a record is served under another slug", file: store, test: "TestRecordOfAnotherSlug",
			from: "if found != string(slug) {", to: "if false {"},

		{fault: "a torn operation is committed with its neighbours", file: writer, test: "TestNeighbours",
			from: "if errors.As(err, &tornError{}) {", to: "if false {"},
		{fault: "success is reported before the commit", file: writer, test: "TestStore/an_order_explains_the_answers_of_callers_at_once",
			from: "\t\t\terr := op.apply(tx)\n", to: "\t\t\terr := op.apply(tx)\n\t\t\tif err == nil {\n\t\t\t\top.result <- nil\n\t\t\t\top.result = make(chan error, 1)\n\t\t\t}\n"},
		{fault: "success is reported although the commit failed", file: writer, test: "TestReadOnlyFile",
			from: "\t\tif err != nil {\n\t\t\top.result <- err", to: "\t\tif err != nil && i >= len(results) {\n\t\t\top.result <- err"},
		{fault: "a creation that was claimed is called withdrawn", file: writer, test: "TestWaitIsBounded",
			from: "if op.withdraw() {", to: "if op.withdraw() || true {"},
		{fault: "a withdrawn creation is stored", file: writer, test: "TestWithdrawnIsNeverWritten",
			from: "\t\t\tif !op.claim() {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tclaimed", to: "\t\t\top.claim()\n\t\t\tclaimed"},
		{fault: "a refusal undoes its neighbours", file: writer, test: "TestNeighbours",
			from: "if errors.As(err, &tornError{}) {", to: "if err != nil {"},
		{fault: "writing goes on after a failed flush", file: writer, test: "TestReadOnlyFile",
			from: "s.fail(err, !noSpace(err))", to: "s.fail(err, false)"},
		{fault: "a full queue makes requests wait", file: writer, test: "TestQueueIsBounded",
			from: "\tselect {\n\tcase queue <- op:\n\tdefault:", to: "\tselect {\n\tcase queue <- op:\n\tcase <-s.done:"},
		{fault: "what has queued is dropped when the store closes", file: writer, test: "TestCloseFinishesWhatHasQueued",
			from: "\tfor {\n\t\tselect {\n\t\tcase op := <-s.queue:\n\t\t\tsweeping",
			to:   "\tfor {\n\t\tselect {\n\t\tcase <-s.closing:\n\t\t\treturn\n\t\tdefault:\n\t\t}\n\t\tselect {\n\t\tcase op := <-s.queue:\n\t\t\tsweeping"},

		{fault: "the day before the newest is swept", file: sweep, test: "TestSweep",
			from: "boltquota.Sweep(tx, keep.Start, sweepChunk)", to: "boltquota.Sweep(tx, keep.End, sweepChunk)"},
		{fault: "sweeping goes by the newest day that has a secret", file: sweep, test: "TestSweep",
			from: "\tkeep, err := quota.PreviousDay(newest)\n",
			to:   "\tlast, _ := tx.Bucket([]byte(\"days\")).Cursor().Last()\n\t\tkeep, err := quota.PreviousDay(string(last))\n"},
		{fault: "old days are never swept", file: sweep, test: "TestSweep",
			from: "if newest == \"\" {", to: "if true {"},

		{fault: "the cache answers for another slug", file: cache, test: "TestCache",
			from: "v != nil && v.text[:v.slug] == string(slug)", to: "v != nil"},
		{fault: "a link that was changed is served as it was", file: cache, test: "TestStore/a_change_is_seen_by_whoever_comes_after_it",
			from: "{ c.set(string(slug)).generation.Add(1) }", to: "{}"},
		{fault: "what was read before a change is kept after it", file: cache, test: "TestCacheAfterAChange",
			from: "v.generation == generation", to: "v.generation <= generation"},
		{fault: "a limit of visits is checked outside the transaction", file: manage, test: "TestStore/a_limit_of_visits_is_exact",
			from: "if link, visited, err = s.visitable(tx, slug); err != nil {", to: "if link, visited, err = s.visitable(tx, slug); err != nil && err != shortener.ErrGone {"},
		{fault: "a share of the budget is told each time", file: "shortener/boltstore/notices.go", test: "TestStore/a_share_of_the_budget_is_told_once",
			from: "if outbox.Get([]byte(n.ID)) != nil {", to: "if false {"},
		{fault: "an act that is refused changes something", file: acts, test: "TestStore/what_operators_set_comes_and_goes",
			from: "case c.Verb == shortener.AddEntry && there:", to: "case false && there:"},
		{fault: "an act is done although what it is based on was changed", file: acts, test: "TestStore/an_act_is_done_in_view_of_what_it_is_based_on",
			from: "if found := find(e); found == nil || string(found) != e.Value {", to: "if found := find(e); found == nil {"},
		{fault: "a link that was changed since it was chosen is deleted", file: acts, test: "TestStore/links_that_are_no_longer_meant_are_left_alone",
			from: "if act.Means(before) {", to: "if !before.Deleted {"},
		{fault: "a link that was taken down can be changed", file: manage, test: "TestStore/a_link_that_is_taken_down_cannot_be_changed",
			from: "if err == nil && link.TakenDown != \"\" {", to: "if false {"},
		{fault: "a deleted slug is given to another", file: manage, test: "TestStore/a_deleted_link_stays_deleted",
			from: "return tx.Bucket(linksName).Put(s.numbers.key(link.Slug), raw)", to: "if link.Deleted {\n\t\treturn tx.Bucket(linksName).Delete(s.numbers.key(link.Slug))\n\t}\n\treturn tx.Bucket(linksName).Put(s.numbers.key(link.Slug), raw)"},
		{fault: "the cache outlives the file it was filled from", file: recovery, test: "TestVisitedLinks",
			from: "\ts.cache.clear()\n", to: ""},
	}
}
