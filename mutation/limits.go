package main

// limits are mutants of package quota and of the counters in bbolt.
func limits() []mutant {
	const (
		decide   = "quota/decide.go"
		policy   = "quota/policy.go"
		client   = "quota/client.go"
		window   = "quota/window.go"
		throttle = "quota/throttle.go"
		refusals = "quota/refusals.go"
		counters = "quota/boltquota/boltquota.go"
		periods  = "quota/boltquota/period.go"
	)
	return []mutant{
		{fault: "the last unit of a limit is refused", file: decide, test: "TestDecide",
			from: "used[i] > open-c.Cost", to: "used[i] >= open-c.Cost"},
		{fault: "one unit more than the limit is admitted", file: decide, test: "TestDecide",
			from: "used[i] > open-c.Cost", to: "used[i] > open"},
		{fault: "a sum that overflows is admitted", file: decide, test: "TestDecide",
			from: "used[i] > open-c.Cost", to: "used[i]+c.Cost > open"},
		{fault: "the first insert of a counter is admitted unseen", file: decide, test: "TestDecide",
			from: "used[i] > open-c.Cost", to: "used[i] > 0 && used[i] > open-c.Cost"},
		{fault: "the narrowest level that refuses is named", file: decide, test: "TestDecide",
			from: "\tfor i, c := range charges {\n\t\topen", to: "\tfor i := len(charges) - 1; i >= 0; i-- {\n\t\tc := charges[i]\n\t\topen"},
		{fault: "the part for newcomers is open to all", file: decide, test: "TestDecideNewcomersJourney",
			from: "if c.Reserved > 0 && ", to: "if c.Reserved > c.Max && "},
		{fault: "a newcomer is refused like anyone", file: decide, test: "TestDecideNewcomersJourney",
			from: "c.Reserved > 0 && !newcomer(charges[i:], used[i:])", to: "c.Reserved > 0"},
		{fault: "a batch counts as a newcomer", file: decide, test: "TestDecideNewcomersJourney",
			from: "charges[0].Cost != 1 || ", to: ""},
		{fault: "a fresh client of a known network counts as a newcomer", file: decide, test: "TestDecideNewcomersJourney",
			from: "range used[1:]", to: "range used[len(used)-1:]"},
		{fault: "a demand of nothing is admitted", file: decide, test: "TestDecideInvalid",
			from: "case c.Cost < 1:", to: "case c.Cost < 0:"},
		{fault: "a negative stored count gives room", file: decide, test: "TestDecideInvalid",
			from: "case used[i] < 0:", to: "case false:"},

		{fault: "the network level is skipped", file: policy, test: "TestPolicyCharges",
			from: "if p.Network > 0 && who", to: "if p.Network < 0 && who"},
		{fault: "a level in a dry run refuses", file: "quota/decide.go", test: "TestDryRun",
			from: "open-c.Cost && !c.DryRun {", to: "open-c.Cost {"},
		{fault: "an override outlives its end", file: "quota/override.go", test: "TestOverrides",
			from: "ok && found.holds(now) {", to: "ok {"},
		{fault: "a block of a network leaves its clients alone", file: "quota/override.go", test: "TestOverrides",
			from: "\tif limits.Blocked {\n\t\tlimits.Client = 0\n\t}\n", to: ""},
		{fault: "a key is limited as an address is", file: policy, test: "TestPolicyCharges",
			from: "p.Client, p.Network = key.Limit, 0", to: "p.Network = 0"},
		{fault: "a key is in a network", file: policy, test: "TestPolicyCharges",
			from: "p.Client, p.Network = key.Limit, 0", to: "p.Client = key.Limit"},
		{fault: "the client level is skipped", file: policy, test: "TestPolicyCharges",
			from: "if p.Client > 0 ||", to: "if p.Client < 0 ||"},
		{fault: "the service level is skipped where a network level is on", file: policy, test: "TestPolicyCharges",
			from: "\tif p.Service > 0 {\n\t\treserved", to: "\tif p.Service > 0 && p.Network == 0 {\n\t\treserved"},
		{fault: "every network has the same counter", file: policy, test: "TestPolicyCharges",
			from: "secret.Subject(LevelNetwork, who.Network())", to: `""`},
		{fault: "limits of which one breaks another's promise are accepted", file: policy, test: "TestPolicyValidate",
			from: "if widest > p.Service-p.Newcomers {", to: "if widest > p.Service {"},

		{fault: "a subject is the plain address", file: client, test: "TestSubject",
			from: "mac := hmac.New(sha256.New, s[:])\n", to: "if true {\n\t\treturn Subject(name)\n\t}\n\tmac := hmac.New(sha256.New, s[:])\n"},
		{fault: "a subject is a hash without the secret", file: client, test: "TestSubject",
			from: "hmac.New(sha256.New, s[:])", to: "hmac.New(sha256.New, nil)"},
		{fault: "two levels share a subject", file: client, test: "TestSubject",
			from: "append([]byte(level), ' ')", to: "[]byte{' '}"},
		{fault: "each IPv6 address is a client", file: client, test: "TestClientOf",
			from: "clientBits4, clientBits6   = 32, 64", to: "clientBits4, clientBits6   = 32, 128"},
		{fault: "each IPv4 address is a network", file: client, test: "TestClientsOfOneBlock",
			from: "networkBits4, networkBits6 = 24, 48", to: "networkBits4, networkBits6 = 32, 48"},
		{fault: "a mapped address is another client", file: client, test: "TestClientOf",
			from: "addr.Unmap().WithZone", to: "addr.WithZone"},
		{fault: "all clients behind NAT64 are one", file: client, test: "TestClientOf",
			from: "if nat64.Contains(addr) {", to: "if false {"},

		{fault: "a day is the clock's local day", file: window, test: "TestDayOf",
			from: "y, m, d := t.UTC().Date()", to: "y, m, d := t.Date()"},
		{fault: "a clock far behind is trusted", file: window, test: "TestCheckClock",
			from: "if day < oldest {", to: "if day < oldest[:0] {"},
		{fault: "a clock one day behind is not trusted", file: window, test: "TestCheckClock",
			from: "if day < oldest {", to: "if day <= oldest {"},

		{fault: "a hungry bucket is evicted", file: throttle, test: "TestThrottleEviction",
			from: "if tokens >= float64(t.burst) {", to: "if tokens >= 1 {"},
		{fault: "a full set evicts whoever comes nearest to full", file: throttle, test: "TestThrottleEviction",
			from: "t.burst, now))\n\treturn overflow", to: "t.burst, now))\n\treturn fullest"},
		{fault: "an evicted client's bucket is made anew", file: throttle, test: "TestThrottleEviction",
			from: "if s.buckets[i] == nil {", to: "if s.buckets[i] == nil || s.keys[i] != k {"},
		{fault: "the clients of one network fill every set", file: throttle, test: "TestThrottleSets",
			from: "maphash.Comparable(t.seed, networkKeyOf(c))", to: "maphash.Comparable(t.seed, keyOf(c))"},
		{fault: "the throttle's time goes back", file: throttle, test: "TestThrottleClockSteps",
			from: "if t := now(); t.After(s.last) {", to: "if t := now(); true {"},
		{fault: "the clock is read before the lock", file: throttle, test: "TestThrottleConcurrent",
			from: "\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\tnow := s.instant(t.now)\n\tbucket := s.claim(",
			to:   "\tnow := s.instant(t.now)\n\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\tbucket := s.claim("},
		{fault: "asking for the wait takes a token", file: throttle, test: "TestThrottleWait",
			from: "\tif bucket == nil {\n\t\treturn 0\n\t}\n\treturn t.wait(", to: "\tif bucket == nil {\n\t\treturn 0\n\t}\n\tbucket.AllowN(now, 1)\n\treturn t.wait("},

		{fault: "who was refused yesterday is refused today", file: refusals, test: "TestRefusals",
			from: " && m.period == period", to: ""},
		{fault: "a client is refused because another was", file: refusals, test: "TestRefusalsShareSlots",
			from: " && m.client == c", to: ""},

		{fault: "an unreadable counter is zero", file: counters, test: "TestCannotCount",
			from: `return c, fmt.Errorf("has %d bytes, not 8 or 16", len(raw))`, to: "return c, nil"},
		{fault: "a day whose counters are gone is a fresh one", file: counters, test: "TestCannotCount",
			from: "\tif counters == nil {\n\t\treturn nil, ", to: "\tif counters == nil {\n\t\treturn nil, ErrNoPeriod\n\t\treturn nil, "},
		{fault: "only the widest counter is written", file: counters, test: "TestApply",
			from: "\tfor i, c := range charges {\n\t\tbucket, err :=", to: "\tfor i, c := range charges[:1] {\n\t\tbucket, err :="},
		{fault: "it counts before the check", file: counters, test: "TestRefusalInATransactionThatCommits",
			from: "\tusages, err := quota.Decide(charges, quota.Taken(counts))\n\tif err != nil {\n",
			to:   "\tusages, err := quota.Decide(charges, quota.Taken(counts))\n\tif err != nil {\n\t\tcounts[0].Used = charges[0].Max\n\t\twrite(tx, charges[:1], counts)\n"},
		{fault: "the secret outlives its day", file: periods, test: "TestSecretLivesAndDiesWithItsPeriod",
			from: "period.Delete(secretName)", to: "period.Delete(countersName[:0])"},
		{fault: "the day that is to be kept is swept", file: periods, test: "TestSecretLivesAndDiesWithItsPeriod",
			from: "!w.End.After(before)", to: "!w.Start.After(before)"},
	}
}
