package review

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
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
	// Shingles are digests of each three words in sequence of the code, sorted.
	Shingles []int
}

// likeEnough is the least share of common shingles of two findings at one place that are
// the same finding: docs/findings.md has its precision and recall.
const likeEnough = 0.5

// Likeness returns the likeness of f.
func (f Finding) Likeness() Likeness {
	place := sha256.Sum256([]byte(f.Path + "\x00" + string(f.Category)))
	l := Likeness{Fingerprints: f.Fingerprints(), Place: fingerprintText(place)}
	words := strings.FieldsFunc(f.Before+"\n"+f.Quote+"\n"+f.After, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	for i := range max(len(words)-2, min(len(words), 1)) {
		sum := sha256.Sum256([]byte(strings.Join(words[i:min(i+3, len(words))], " ")))
		l.Shingles = append(l.Shingles, int(int32(binary.BigEndian.Uint32(sum[:])))) //nolint:gosec // digest bits
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
	if l.Place != other.Place || len(l.Shingles) == 0 {
		return false
	}
	common := 0
	for _, s := range l.Shingles {
		if _, ok := slices.BinarySearch(other.Shingles, s); ok {
			common++
		}
	}
	return float64(common) >= likeEnough*float64(len(l.Shingles)+len(other.Shingles)-common)
}
