package redaction

import "strings"

// This file knows token formats that have no prefix. longRuns looks at every run of
// token bytes that is long enough: such a run covers one of every stride bytes.
func (d *detector) longRuns() {
	for i := stride - 1; i < len(d.s); i += stride {
		if inRun[d.s[i]] == 0 || !halfRun(d.s, i) {
			continue
		}
		begin := runBack(d.s, i, &runSet, maxToken)
		end := run(d.s, i, &runSet, maxToken)
		if end-begin >= stride && begin >= d.placeholderEnd {
			d.longRun(begin, end)
		}
		i += (end - 1 - i) / stride * stride
	}
}

// stride is the length of the shortest run of interest: a Twilio id.
const stride = 34

// halfRun reports whether the run around s[i] can have stride bytes: then half of
// them are on one side of i. It reads some of them without a branch, which is faster.
func halfRun(s string, i int) bool {
	before, after := byte(0), byte(0)
	if i >= stride/2 {
		t := s[i-stride/2 : i]
		before = inRun[t[1]] & inRun[t[5]] & inRun[t[9]] & inRun[t[13]]
	}
	if i+stride/2 < len(s) {
		t := s[i+1 : i+1+stride/2]
		after = inRun[t[3]] & inRun[t[7]] & inRun[t[11]] & inRun[t[15]]
	}
	return before|after != 0
}

// inRun is 1 for the bytes of runSet.
var inRun = runSet.table()

// longRun masks the tokens in the run s[begin:end].
func (d *detector) longRun(begin, end int) {
	s := d.s[begin:end]
	d.telegram(begin, end)
	if strings.HasPrefix(s, "//") || strings.Contains(s, "://") {
		return
	}
	if isTicketLine(d.s, begin, end) {
		d.report("p4-ticket", "p4 ticket", end-32, end)
		return
	}
	d.twilio(begin, end)
	d.nkey(begin, end)
	d.storageKey(begin, end)
	d.discord(begin, end)
	d.mailKeys(begin, end)
	d.salesforce(begin, end)
}

// isTicketLine reports whether a run is a line of a .p4tickets file,
// host:port=user:TICKET, or of the output of p4 tickets.
func isTicketLine(s string, begin, end int) bool {
	text := s[begin:end]
	if len(text) < 36 || (end < len(s) && !spaceSet.has(s[end]) && !quoteSet.has(s[end])) {
		return false
	}
	ticket := text[len(text)-32:]
	return text[len(text)-33] == ':' && allIn(ticket, &upperHex) && !allIn(ticket, &digitSet) &&
		strings.ContainsAny(text[:len(text)-33], "=:")
}

// twilio masks identifiers of Twilio, of keys, accounts or messages: two capitals
// and 32 hex digits, also as a part of a path.
func (d *detector) twilio(begin, end int) {
	for at := begin; at < end; {
		stop := run(d.s, at, &alnumSet, end-at)
		if s := d.s[at:stop]; len(s) == 34 && isUpper(s[0]) && isUpper(s[1]) && allIn(s[2:], &lowerHex) && distinct(s[2:]) > 4 {
			d.report("twilio-key", "twilio id", at, stop)
		}
		at = stop + 1
	}
}

// storageKey masks keys of Azure Storage and Cosmos DB: 64 bytes in base64.
func (d *detector) storageKey(begin, end int) {
	s := d.s[begin:end]
	if !strings.HasSuffix(s, "==") || len(s) < 88 {
		return
	}
	key := s[len(s)-88:]
	before := s[:len(s)-88]
	if allIn(key[:86], &plain64) && (before == "" || !plain64.has(lastByte(before))) && !strings.HasSuffix(before, "-") && isMixedCase(key) && !d.isContentHash(end-88) {
		d.report("azure-key", "storage key", end-88, end)
	}
}

// isContentHash reports whether a digest of a package, in a NuGet lock file, begins at i.
func (d *detector) isContentHash(i int) bool {
	before := strings.TrimRight(d.s[max(0, i-maxName):i], " \t\"':=")
	name := before[runBack(before, len(before), &codeIdent, maxName):]
	return lists["digest"][strings.ToLower(name)]
}

// nkey masks seeds of NATS keys: 58 bytes of base32, S and the kind first.
func (d *detector) nkey(begin, end int) {
	s := d.s[begin:end]
	if i := strings.LastIndexAny(s, ":=/.") + 1; len(s)-i == 58 && s[i] == 'S' && strings.IndexByte("ACNOUXPD", s[i+1]) >= 0 && allIn(s[i:], &base32Set) {
		d.report("nkey-seed", "nkey seed", begin+i, end)
	}
}

// telegram masks bot tokens: 8 to 10 digits, a colon, 34 to 36 bytes.
func (d *detector) telegram(begin, end int) {
	s := d.s[begin:end]
	for i := strings.IndexByte(s, ':'); i >= 0; {
		id := runBack(s, i, &digitSet, 11)
		stop := run(s, i+1, &wordSet, 40)
		if n := i - id; n >= 8 && n <= 10 && (stop-i-1 >= 34 && stop-i-1 <= 36) && isMixedCase(s[i+1:stop]) && (!followsAlnum(s, id) || strings.HasSuffix(s[:id], "/bot")) {
			d.report("telegram-token", "telegram bot token", begin+id, begin+stop)
			return
		}
		next := strings.IndexByte(s[i+1:], ':')
		if next < 0 {
			return
		}
		i += 1 + next
	}
}

// discord masks bot tokens: an id in base64, a time, a hash.
func (d *detector) discord(begin, end int) {
	s := strings.TrimLeft(d.s[begin:end], "=:!")
	parts := strings.Split(s, ".")
	if len(parts) != 3 || strings.IndexByte("MNO", s[0]) < 0 {
		return
	}
	id, made, sum := len(parts[0]), len(parts[1]), len(parts[2])
	fits := id >= 23 && id <= 28 && made >= 6 && made <= 7 && sum >= 27 && sum <= 40
	if fits && allIn(parts[0]+parts[1]+parts[2], &wordSet) {
		d.report("discord-token", "discord bot token", end-len(s), end)
	}
}

// mailKeys masks API keys of Mailchimp, 32 hex digits and a data center, and of
// Mailgun, 32 hex digits and twice eight.
func (d *detector) mailKeys(begin, end int) {
	s := strings.TrimLeft(d.s[begin:end], "=:")
	begin = end - len(s)
	if len(s) == 50 && s[32] == '-' && s[41] == '-' && allIn(s[:32]+s[33:41]+s[42:], &lowerHex) {
		d.report("mailgun-key", "mailgun key", begin, end)
	}
	if i := strings.Index(s, "-us"); i >= 32 && i+4 <= len(s) && isDigit(s[i+3]) && allIn(s[i-32:i], &lowerHex) {
		d.report("mailchimp-key", "mailchimp key", begin+i-32, end)
	}
}

// salesforce masks session ids: the id of an organization, ! and a hash.
func (d *detector) salesforce(begin, end int) {
	s := d.s[begin:end]
	if i := strings.IndexByte(s, '!'); i >= 11 && i <= 18 && len(s)-i >= 30 && strings.HasPrefix(s, "00D") {
		d.report("salesforce-token", "salesforce session", begin, end)
	}
}

// isMixedCase reports whether s has capitals, small letters and digits.
func isMixedCase(s string) bool {
	sh := shapeOf(s)
	return sh.upper > 0 && sh.lower > 0 && sh.digit > 0
}
