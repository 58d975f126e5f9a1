package web

import (
	"net/http"
	"strings"
	"testing"
	"unsafe"

	"snip/shortener"
)

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

func TestVisitorOf(t *testing.T) {
	t.Parallel()
	known := knownAgents(t)
	for _, row := range []struct {
		method string
		header http.Header
		want   shortener.Visitor
	}{
		{"GET", http.Header{}, shortener.Crawler},
		{"GET", http.Header{"User-Agent": {""}}, shortener.Crawler},
		{"GET", http.Header{"User-Agent": {firefox}}, shortener.Person},
		{"HEAD", http.Header{"User-Agent": {firefox}}, shortener.Head},
		{"HEAD", http.Header{"User-Agent": {slackbot}}, shortener.Head},
		{"GET", http.Header{"User-Agent": {firefox}, "Sec-Purpose": {"prefetch"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {firefox}, "Sec-Purpose": {"prefetch;prerender"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {firefox}, "Sec-Purpose": {"prefetch;anonymous-client-ip"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {firefox}, "Purpose": {"prefetch"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {firefox}, "Purpose": {"Prefetch"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {firefox}, "X-Purpose": {"preview"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {firefox}, "X-Moz": {"prefetch"}}, shortener.Prefetch},
		{"GET", http.Header{"User-Agent": {firefox}, "Sec-Purpose": {""}}, shortener.Person},
	} {
		if got := known.visitorOf(&http.Request{Method: row.method, Header: row.header}); got != row.want {
			t.Errorf("%s %v: %d, want %d", row.method, row.header, got, row.want)
		}
	}
}

func knownAgents(t *testing.T) *agents {
	t.Helper()
	known, err := newAgents()
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func TestVisitorNamed(t *testing.T) {
	t.Parallel()
	const (
		android = "Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/143.0.7499.34 Mobile Safari/537.36"
		iphone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
	)
	known := knownAgents(t)
	for want, names := range map[shortener.Visitor][]string{
		shortener.Person: {
			firefox,
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36 Edg/143.0.0.0",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 OPR/125.0.0.0",
			"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15",
			"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
			"Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko",
			"Mozilla/5.0 (Android 14; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0",
			"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Mobile Safari/537.36",
			"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
			"Mozilla/5.0 (Linux; U; Android 13; en-us; Redmi Note 11) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/112.0.5615.136 Mobile Safari/537.36 XiaoMi/MiuiBrowser/14.9.1-gn",
			"Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36 Chrome/120 Mobile",
			"Mozilla/5.0 (Linux; Android 10; CUBOT_NOTE_S Build/NRD90M) AppleWebKit/537.36 Chrome/120.0.0.0 Mobile Safari/537.36",
			"Mozilla/5.0 (Linux; Android 7.0;CUBOT) AppleWebKit/537.36 Chrome/96.0.4664.45 Mobile Safari/537.36",
			iphone + " Version/18.1 Mobile/15E148 Safari/604.1",
			iphone + " CriOS/143.0.7499.92 Mobile/15E148 Safari/604.1",
			iphone + " FxiOS/145.0 Mobile/15E148 Safari/604.1",
			iphone + " GSA/400.0.836137551 Mobile/15E148 Safari/604.1",
			iphone + " Version/18.1 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15",
			iphone + " Mobile/22B83 Instagram 360.0.0.30.109 (iPhone14,5; iOS 18_1; en_US; en; scale=3.00; 1170x2532; 670263371)",
			iphone + " Mobile/22B83 [FBAN/FBIOS;FBAV/490.1.0.35.106;FBBV/665337277;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/18.1;FBSS/3;FBCR/;FBID/phone;FBLC/en_US;FBOP/80]",
			iphone + " Mobile/22B83 Safari Line/14.19.1",
			iphone + " Mobile/22B83 KAKAOTALK 11.2.1",
			iphone + " Mobile/22B83 NAVER(inapp; search; 2000; 12.9.3; 14)",
			iphone + " Mobile/22B83 MicroMessenger/8.0.53(0x18003531) NetType/WIFI Language/en",
			iphone + " Mobile/22B83 [LinkedInApp]/9.30.2151",
			iphone + " Mobile/22B83 Snapchat/13.17.0.38 (like Safari/8620.1.16.10.11, panda)",
			iphone + " Mobile/22B83 musical_ly_36.9.0 JsSdk/2.0 NetType/WIFI Channel/App Store ByteLocale/en Region/US",
			android,
			android + " [FB_IAB/FB4A;FBAV/490.0.0.63.82;]",
			android + " [FBAN/EMA;FBLC/en_US;FBAV/440.0.0.5.108;]",
			android + " MetaIAB Facebook",
			android + " Instagram 360.0.0.52.192 Android (34/14; 450dpi; 1080x2115; samsung; SM-S918B; dm3q; qcom; en_US; 672535977)",
			android + " GSA/15.46.32.29.arm64",
			android + " KAKAOTALK/25.10.0 (INAPP)",
			android + " Line/14.19.1/IAB",
			android + " trill_370104 JsSdk/1.0 NetType/WIFI Channel/googleplay AppName/trill app_version/37.1.4 ByteLocale/en ByteFullLocale/en Region/SG",
			"Mozilla/5.0 (Linux; Android 14; SAMSUNG SM-X200) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
			"Mozilla/5.0 (SMART-TV; Linux; Tizen 7.0) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/4.0 Chrome/94.0.4606.31 TV Safari/537.36",
			"Mozilla/5.0 (PlayStation; PlayStation 5/6.00) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.4 Safari/605.1.15",
		},
		shortener.Fetcher: {
			slackbot,
			"facebookexternalhit/1.1",
			"facebookexternalhit/1.1;line-poker/1.0",
			"meta-externalfetcher/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)",
			"Twitterbot/1.0",
			"Synapse (bot; +https://github.com/matrix-org/synapse)",
			"Synapse/1.120.0 (bot; +https://github.com/element-hq/synapse)",
			"Mozilla/5.0 (compatible; ZulipURLPreview/9.4; +https://chat.example.org)",
			"Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
			"Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
			"MicrosoftPreview/2.0; +https://aka.ms/MicrosoftPreview",
			"Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots",
			"WhatsApp/2.23.20.0", "TelegramBot (like TwitterBot)", "LinkedInBot/1.0 (compatible; Mozilla/5.0; +http://www.linkedin.com)",
			"Mastodon/4.3.1 (http.rb/5.2.0; +https://social.example/)", "Lemmy/0.19.8; +https://lemmy.example",
			"Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
			"Discourse Forum Onebox v3.3.0.beta1-dev", "Iframely/1.3.1 (+https://iframely.com/docs/about) Atlassian",
		},
		shortener.Crawler: {
			"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
			"Googlebot-Image/1.0", "Googlebot-Video/1.0", "Mediapartners-Google", "AdsBot-Google (+http://www.google.com/adsbot.html)",
			"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
			"Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)",
			"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
			"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
			"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot",
			"CCBot/2.0 (https://commoncrawl.org/faq/)", "Baiduspider+(+http://www.baidu.com/search/spider.htm)", "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)",
			"python-httpx/0.27", "python-httpx/0.27.0", "python-requests/2.32.3", "Python-urllib/3.12", "Python/3.12 aiohttp/3.10.5",
			"curl/8.5.0", "Wget/1.21.4", "Wget/1.21.4 (linux-gnu)", "Go-http-client/1.1", "Go-http-client/2.0", "okhttp/4.12.0", "Java/21.0.2", "Apache-HttpClient/4.5.14 (Java/17.0.9)",
			"axios/1.7.7", "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)", "undici", "node", "got (https://github.com/sindresorhus/got)", "libwww-perl/6.72", "Ruby",
			"PostmanRuntime/7.42.0", "HTTPie/3.2.3", "GuzzleHttp/7", "Scrapy/2.11.2 (+https://scrapy.org)", "reqwest/0.12.8", "aria2/1.37.0",
			"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/143.0.0.0 Safari/537.36",
			"Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)", "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
			"Feedfetcher-Google; (+http://www.google.com/feedfetcher.html)", "GoogleOther", "AhrefsBot/7.0",
			"Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)", "Mozilla/5.0 (X11; Linux x86_64) Chrome-Lighthouse",
		},
	} {
		for _, name := range names {
			for range 2 { // the second time from memory
				if got := known.visitorNamed(http.Header{"User-Agent": {name}}); got != want {
					t.Errorf("%q: %d, want %d", name, got, want)
				}
			}
		}
	}
}

func TestReferrerOf(t *testing.T) {
	t.Parallel()
	for referer, want := range map[string]string{
		"https://News.Example.org/a?b#c":        "news.example.org",
		"http://example.org":                    "example.org",
		"https://example.org:8443/":             "example.org",
		"https://user:pass@example.org/":        "example.org",
		"https://[2001:db8::1]:8443/x":          "[2001:db8::1]",
		"https://[2001:db8::1]/":                "[2001:db8::1]",
		"https://example.org?x":                 "example.org",
		"":                                      "",
		"about:blank":                           "",
		"android-app://com.slack/":              "com.slack",
		"android-app://com.Slack":               "com.slack",
		"Android-App://com.google.android.gm/x": "com.google.android.gm",
		"ios-app://618783545/https/slack.com":   "618783545",
		"android-app:///":                       "",
		"android-app:com.slack":                 "",
		"file:///etc/passwd":                    "",
		"chrome-extension://abcdefgh/":          "",
		"https:///path":                         "",
		"https://<script>/":                     "",
		"https://exa mple.org/":                 "",
		"https://münchen.example/":              "",
		"https://" + strings.Repeat("a", 300):   "",
	} {
		if got := referrerOf(http.Header{"Referer": {referer}}); got != want {
			t.Errorf("%q: %q, want %q", referer, got, want)
		}
	}
	if got := referrerOf(http.Header{"Referer": {"https://a.example/", "https://b.example/"}}); got != "" {
		t.Errorf("two of them: %q", got)
	}
}

// What is remembered of a User-Agent is a copy: it may be part of a header of many
// kilobytes.
func TestAgentsHoldNoRequests(t *testing.T) {
	t.Parallel()
	known := knownAgents(t)
	header := strings.Repeat("z", 100) + "Mozilla/5.0" + strings.Repeat("z", 100)
	name := header[100:111]
	known.visitorNamed(http.Header{"User-Agent": {name}})
	for i := range known.slots {
		if a := known.slots[i].Load(); a != nil && unsafe.StringData(a.name) == unsafe.StringData(name) {
			t.Error("it is part of the header")
		}
	}
}

// A pattern of the list has conditions that Go's regexp does not know.
func TestCrawlerPattern(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"(?<! cu)bots?(?:\\b|_)", "a bot", true},
		{"(?<! cu)bots?(?:\\b|_)", "a cubot", false},
		{"(?<! cu)bots?(?:\\b|_)", "a cubot and a bot_", true},
		{"(?<! cu)bots?(?:\\b|_)", "bottle", false},
		{"(?<! channel/|google/)google(?!(?:wv|app))", "channel/google", true},
		{"(?<! channel/|google/)google(?!(?:wv|app))", "a channel/google", false},
		{"(?<! channel/|google/)google(?!(?:wv|app))", "googleapp", false},
		{"java(?!;)", "java;", false},
		{"java(?!;)", "java", true},
		{"^wget", "wget/1", true},
		{"^wget", "a wget/1", false},
		{"\\bdlc\\b", "a dlc", true},
		{"\\bdlc\\b", "adlc", false},
		{"^[<\\(;]", ";", true},
		{"^clamav[ /]", "clamav-", false},
		{"crawl", "a crawler", true},
	} {
		p, err := parseCrawlerPattern(row.pattern)
		if err != nil || p.matches(row.name) != row.want {
			t.Errorf("%s in %q: %v, want %t", row.pattern, row.name, err, row.want)
		}
	}
	for _, pattern := range []string{"(?<!a.c)b", "(", "a(?!()", "(?=a)b", "(?<=a)b"} {
		if _, err := parseCrawlerPattern(pattern); err == nil {
			t.Errorf("%s is taken", pattern)
		}
	}
}

// A User-Agent may have as many bytes as all headers together.
func TestVisitorNamedLooksAtSoMuch(t *testing.T) {
	known := knownAgents(t)
	long := firefox + strings.Repeat(" a", agentLength)
	for name, want := range map[string]shortener.Visitor{
		firefox + strings.Repeat(" ", agentLength-len(firefox)-3) + "bot": shortener.Crawler,
		long + " bot": shortener.Person,
	} {
		if got := known.visitorNamed(http.Header{"User-Agent": {name}}); got != want {
			t.Errorf("%d bytes: %d, want %d", len(name), got, want)
		}
	}
	another := http.Header{"User-Agent": {long + " another"}}
	if n := testing.AllocsPerRun(10, func() { known.visitorNamed(another) }); n > 0 {
		t.Errorf("%v allocations for one that begins like one that is known", n)
	}
}
