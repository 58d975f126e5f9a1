package main

// requests are mutants of the way of a request down to the store and of its
// answer back.
func requests() []mutant {
	const (
		service = "shortener/service.go"
		making  = "shortener/create.go"
		create  = "web/create.go"
		problem = "web/problem.go"
		ip      = "web/clientip.go"
		shown   = "web/authorization.go"

		throttled = "\tif wait, ok := s.throttle.Allow(who); !ok {\n\t\treturn &refusedForm{err: &limitedError{wait: wait, who: who}}\n\t}\n"
		keyed     = "\tkey, err := idempotencyKey(r.Header)\n\tif err != nil {\n\t\treturn &refusedForm{err: err, who: who, read: true}\n\t}\n"
		owned     = "\town.who = who\n"
		read      = "\tb, err := readWanted(w, r, own.take)\n"
	)
	return []mutant{
		{fault: "the clock is read twice in a creation", file: making, test: "TestMidnightWithinACreation",
			from: "\tday := quota.DayOf(now)\n", to: "\tday := quota.DayOf(s.instant())\n"},
		{fault: "the look admits", file: making, test: "TestLookNeverAdmits",
			from: "\tmade = make([]Made, len(links))\n", to: "\tmade = make([]Made, len(links))\n\tfor i := range charges {\n\t\tcharges[i].Max = 1 << 62\n\t}\n"},
		{fault: "there is no look, and refusals queue for the writer", file: making, test: "TestFullClient",
			from: "\twouldRefuse, err := s.look(ctx, charges)\n\tif err != nil {", to: "\tvar wouldRefuse []quota.Level\n\tif false {"},
		{fault: "an unknown error of a store passes through", file: service, test: "TestStoreErrorsRefuse",
			from: "return fmt.Errorf(\"%w: %w\", ErrUnavailable, err)\n}\n\n// Allowance is", to: "return err\n}\n\n// Allowance is"},
		{fault: "a store that fails is taken for one that admits", file: making, test: "TestStoreErrorsRefuse",
			from: "\tif err != nil {\n\t\tremember(err)\n\t\treturn nil, false, refusal(err)\n\t}\n\tfor _, level", to: "\tif errors.Is(err, ErrUnavailable) {\n\t\tremember(err)\n\t\treturn nil, false, refusal(err)\n\t}\n\tfor _, level"},
		{fault: "an invalid destination touches the store", file: making, test: "TestInvalidInputTouchesNoStore",
			from: "\tlinks, err := s.parse(d, now)\n", to: "\ts.store.EnsureSecret(ctx, day.Label)\n\tlinks, err := s.parse(d, now)\n"},
		{fault: "random slugs are drawn for ever", file: making, test: "TestRandomSlugTaken",
			from: "for range slugAttempts {", to: "for range 1000 * slugAttempts {"},

		{fault: "the throttle comes after the body", file: create, test: "TestThrottleTouchesNeitherBodyNorStore",
			from: throttled + keyed + owned + read, to: owned + read + throttled + keyed},
		{fault: "the throttle comes after the Idempotency-Key", file: create, test: "TestThrottledListIsNotRead",
			from: throttled + keyed, to: keyed + throttled},
		{fault: "an Idempotency-Key is not handed on", file: create, test: "TestReplay",
			from: "key, err := idempotencyKey(r.Header)", to: "_, err = idempotencyKey(r.Header)\n\tvar key shortener.IdempotencyKey"},
		{fault: "a key beyond its bounds is one", file: "web/idempotency.go", test: "TestIdempotencyKeyHeader",
			from: "len(key) < minIdempotencyKey || len(key) > maxIdempotencyKey || ", to: ""},
		{fault: "one client holds all places for large bodies", file: "web/places.go", test: "TestLargeBodiesNeedAPlace",
			from: " || p.by[who] == maxClientPlaces ||", to: " ||"},
		{fault: "one network holds all places for large bodies", file: "web/places.go", test: "TestPlacesOfOneNetwork",
			from: " || p.in[network] == maxNetworkPlaces {", to: " {"},
		{fault: "one network fills its set of the throttle", file: "quota/throttle.go", test: "TestThrottleRotation",
			from: "if own >= networkSlots {", to: "if false {"},
		{fault: "a large body is refused and keeps its place", file: "web/places.go", test: "TestPlaceIsHeldUntilAnswered",
			from: "\tif p.held {", to: "\tif !p.held {"},
		{fault: "a batch that no day has room for is told to wait", file: making, test: "TestBatchLargerThanADay",
			from: "; most < len(links) {", to: "; most < 0 {"},
		{fault: "a list of any length is read", file: "web/batch.go", test: "TestRefusedLists",
			from: "if len(b.links) == shortener.MaxBatch {", to: "if false {"},
		{fault: "items that could not be read are left out", file: create, test: "TestWrongItems",
			from: "\tcase b.faults != nil:\n", to: "\tcase len(b.faults) == len(b.links):\n"},
		{fault: "the throttle is forgotten", file: create, test: "TestOrderOfChecks",
			from: "s.throttle.Allow(who); !ok {", to: "s.throttle.Allow(who); !ok && false {"},
		{fault: "a page of another site may create", file: create, test: "TestForeignPages",
			from: "if s.foreign.Refuses(r) {", to: "if false {"},
		{fault: "a page whose name was made to point here may create", file: "web/foreign/foreign.go", test: "TestRefuses",
			from: "return !g.owns(page.Host)", to: "return false"},
		{fault: "a request without its page may come under any name", file: "web/foreign/foreign.go", test: "TestRefuses",
			from: "return !g.owns(r.Host)", to: "return false"},
		{fault: "a full client is told to wait for the throttle alone", file: create, test: "TestRetryAfterIsTrue",
			from: "max(exceeded.Usage.ResetAt.Sub(s.now()), throttle.Wait(who))", to: "throttle.Wait(who)"},
		{fault: "a full client is told to wait for the day alone", file: create, test: "TestRetryAfterIsTrue",
			from: "max(exceeded.Usage.ResetAt.Sub(s.now()), throttle.Wait(who))", to: "exceeded.Usage.ResetAt.Sub(s.now()) + 0*throttle.Wait(who)"},

		{fault: "a key that is not known pays as its address", file: shown, test: "TestUnknownKey",
			from: "\tcase shown:\n\t\tkey, ok := s.service.FindKey(text)\n\t\tif !ok {", to: "\tcase shown:\n\t\tkey, ok := s.service.FindKey(text)\n\t\tif !ok && text == \"\" {"},
		{fault: "a private instance is open", file: shown, test: "TestPrivateInstance",
			from: "case s.keysOnly:", to: "case s.keysOnly && shown:"},
		{fault: "a key manages every link", file: "shortener/manage.go", test: "TestKeyHoldsItsLinks",
			from: "h.Key != 0 && l.Key == h.Key", to: "h.Key != 0"},
		{fault: "no key manages the links of none", file: "shortener/manage.go", test: "TestKeyHoldsItsLinks",
			from: "h.Key != 0 && l.Key == h.Key", to: "l.Key == h.Key"},
		{fault: "a revoked key stays in memory", file: "shortener/act.go", test: "TestKeyHoldsItsLinks",
			from: "\ts.set.Store(&set)\n", to: "\tif len(set.keys) > len(s.set.Load().keys) {\n\t\ts.set.Store(&set)\n\t}\n"},

		{fault: "a link that was taken down leads on", file: service, test: "TestTakeDown",
			from: "if target.TakenDown || s.blocks(target.Host) {", to: "if s.blocks(target.Host) {"},
		{fault: "links to a blocked host lead on", file: service, test: "TestBlock",
			from: "if target.TakenDown || s.blocks(target.Host) {", to: "if target.TakenDown {"},
		{fault: "a block does not cover what is below it", file: "shortener/block.go", test: "TestBlock",
			from: "\t\thost = parent\n", to: "\t\thost, below = \"\", parent == \"\"\n"},
		{fault: "who has an override is refused from memory", file: "shortener/act.go", test: "TestOverride",
			from: "refused:   quota.NewRefusals(),", to: "refused:   s.set.Load().refused,"},
		{fault: "a refusal under an override is remembered", file: making, test: "TestOverride",
			from: "; ok && !overridden && ", to: "; ok && (overridden || !overridden) && "},
		{fault: "who is blocked spends a token", file: create, test: "TestOverrides",
			from: "\tif s.service.Limits(who).Blocked {\n\t\treturn &refusedForm{err: shortener.ErrBlocked}\n\t}\n", to: ""},

		{fault: "Retry-After is rounded down", file: "web/words.go", test: "TestRetryAfterIsTrue",
			from: "int64((wait+time.Second-1)/time.Second)", to: "int64(wait/time.Second)"},
		{fault: "a 503 does not say when to try again", file: problem, test: "TestStoreFaults",
			from: "\tp.retryAfter = storePause\n", to: ""},
		{fault: "who cannot be counted is told to be at the limit", file: problem, test: "TestStoreFaults",
			from: "http.StatusServiceUnavailable, \"unavailable\"", to: "http.StatusTooManyRequests, \"unavailable\""},

		{fault: "the leftmost entry of a forwarding header is believed", file: ip, test: "TestFindClient",
			from: "range slices.Backward(f.entries(line))", to: "range slices.All(f.entries(line))"},
		{fault: "the first line of a forwarding header is believed", file: ip, test: "TestFindClient",
			from: "range slices.Backward(lines)", to: "range slices.All(lines)"},
		{fault: "a peer that is no listed proxy is believed", file: ip, test: "TestFindClient",
			from: "c.listed = f.trusts(c.peer)", to: "c.listed = true"},
		{fault: "a listed proxy pays where its header cannot be read", file: ip, test: "TestFindClient",
			from: "\t\tif !ok {\n\t\t\tc.fault =", to: "\t\tif false {\n\t\t\tc.fault ="},
		{fault: "an entry that cannot be read is stepped over", file: ip, test: "TestFindClient",
			from: "\t\t\tif !ok {\n\t\t\t\treturn netip.Addr{}, false\n\t\t\t}\n", to: "\t\t\tif !ok {\n\t\t\t\tcontinue\n\t\t\t}\n"},
		{fault: "a listed proxy's own address pays", file: ip, test: "TestFindClient",
			from: "\t\t\tif !f.trusts(addr) {\n", to: "\t\t\tif true {\n"},
	}
}
