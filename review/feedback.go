package review

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An Opinion is what a reader says about a finding. It is wire format.
type Opinion string

// The opinions.
const (
	OpinionUseful Opinion = "useful"
	OpinionWrong  Opinion = "wrong"
	OpinionFixed  Opinion = "fixed"
)

// Opinions lists all opinions.
func Opinions() []Opinion { return []Opinion{OpinionUseful, OpinionWrong, OpinionFixed} }

// Feedback is the opinion of one reader on one finding.
type Feedback struct {
	Token   string // of the finding
	Opinion Opinion
	Note    string // the reader's words, redacted
	Who     string // p4 user
	At      time.Time
}

// A FeedbackMail is a mail that gives an opinion. Its sender is proven: the token in its
// subject was made for this address, and a relay has confirmed the address.
type FeedbackMail struct {
	Feedback
	Sender string // address
}

// tokenLength gives 65 bits: short enough to type, long enough not to be guessed.
const tokenLength = 13

var tokenPattern = regexp.MustCompile(`^[a-z2-7]{13}$`)

// NewFeedbackToken returns a random token for one finding of one review. Only readers
// of the finding know it.
func NewFeedbackToken() string { return strings.ToLower(rand.Text()[:tokenLength]) }

// ParseFeedbackToken returns the token in s in lower case; ok reports whether s has
// the form of a token.
func ParseFeedbackToken(s string) (token string, ok bool) {
	token = strings.ToLower(strings.TrimSpace(s))
	return token, tokenPattern.MatchString(token)
}

// A Likeness is what is compared to recognise a finding in a later version, in which its
// code may have moved or changed a little. It has no content of the code.
type Likeness struct {
	// Fingerprints identify the finding at each of its places exactly.
	Fingerprints []string
	// Place is a digest of path and category.
	Place string
	// Shingles are digests of the code, sorted: odd ones of each word and operator of the
	// quote, even ones of each three words in sequence of the lines around it.
	Shingles []int
}

// likeEnough is the least share of common shingles of two findings at one place that are
// the same finding, of their quotes and of the lines around: docs/findings.md has its
// precision and recall.
const likeEnough = 0.6

var (
	word        = regexp.MustCompile(`[\pL\pN_]+`)
	wordOrSigns = regexp.MustCompile(`[\pL\pN_]+|[^\pL\pN_\s]+`)
)

// Likeness returns the likeness of f.
func (f Finding) Likeness() Likeness {
	place := sha256.Sum256([]byte(f.Path + "\x00" + string(f.Category)))
	l := Likeness{Fingerprints: f.Fingerprints(), Place: fingerprintText(place)}
	add := func(words []string, quoted int) {
		sum := sha256.Sum256([]byte(strings.Join(words, " ")))
		l.Shingles = append(l.Shingles, int(int32(binary.BigEndian.Uint32(sum[:])))&^1|quoted) //nolint:gosec // digest bits
	}
	for _, w := range wordOrSigns.FindAllString(f.Quote, -1) {
		add([]string{w}, 1)
	}
	words := word.FindAllString(f.Before+"\n"+f.After, -1)
	for i := range max(len(words)-2, min(len(words), 1)) {
		add(words[i:min(i+3, len(words))], 0)
	}
	slices.Sort(l.Shingles)
	l.Shingles = slices.Compact(l.Shingles)
	return l
}

// Is reports whether both are the likeness of the same finding.
func (l Likeness) Is(other Likeness) bool {
	if slices.ContainsFunc(other.Fingerprints, func(f string) bool { return slices.Contains(l.Fingerprints, f) }) {
		return true
	}
	var common, all [2]float64 // of the lines around, of the quote
	for _, s := range l.Shingles {
		all[s&1]++
		if _, ok := slices.BinarySearch(other.Shingles, s); ok {
			common[s&1]++
		}
	}
	for _, s := range other.Shingles {
		if _, ok := slices.BinarySearch(l.Shingles, s); !ok {
			all[s&1]++
		}
	}
	return l.Place == other.Place && common[1] > 0 && common[1] >= likeEnough*all[1] && common[0] >= likeEnough*all[0]
}
