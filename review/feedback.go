package review

import (
	"crypto/rand"
	"net/url"
	"regexp"
	"strings"
)

// An Opinion is what a reader says of a finding. It is wire format.
type Opinion string

// The opinions.
const (
	OpinionUseful Opinion = "useful"
	OpinionWrong  Opinion = "wrong" // it is not reported again at its place
)

// Opinions lists all opinions.
func Opinions() []Opinion { return []Opinion{OpinionUseful, OpinionWrong} }

// tokenLength makes 65 bits: short enough to be typed, too many to be guessed.
const tokenLength = 13

var tokenPattern = regexp.MustCompile(`^[a-z2-7]{13}$`)

// NewFeedbackToken returns a fresh name for one finding of one review. Who
// knows it has read the finding.
func NewFeedbackToken() string { return strings.ToLower(rand.Text()[:tokenLength]) }

// ParseFeedbackToken returns the token in s, however its letters are written;
// ok tells whether it has the form of one.
func ParseFeedbackToken(s string) (token string, ok bool) {
	token = strings.ToLower(strings.TrimSpace(s))
	return token, tokenPattern.MatchString(token)
}

// FeedbackLinks say where readers can answer besides the command line.
type FeedbackLinks struct {
	Address string // mail address, empty if there is none
	URL     string // http address, empty if there is none
}

// To is the link by which a reader says o of the finding with token, empty if
// none is configured. A page is asked with token and opinion in its query; a
// mail has both in its subject.
func (l FeedbackLinks) To(token string, o Opinion) string {
	if u, err := url.Parse(l.URL); err == nil && l.URL != "" {
		query := u.Query()
		query.Set("token", token)
		query.Set("opinion", string(o))
		u.RawQuery = query.Encode()
		return u.String()
	}
	if l.Address == "" {
		return ""
	}
	return "mailto:" + url.PathEscape(l.Address) + "?subject=" + url.PathEscape(FeedbackCommand(token, o))
}

// FeedbackCommand is what is typed to say o of the finding with token.
func FeedbackCommand(token string, o Opinion) string {
	return "criticizer feedback " + token + " " + string(o)
}
