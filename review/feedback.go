package review

import (
	"crypto/rand"
	"net/url"
	"regexp"
	"strings"
)

// An Opinion is the rating of a finding by a reader. It is wire format.
type Opinion string

// The opinions.
const (
	OpinionUseful Opinion = "useful"
	OpinionWrong  Opinion = "wrong" // the finding is not reported again
)

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

// FeedbackLinks are the targets of feedback links.
type FeedbackLinks struct {
	// Mail address that the links write to, with the rating in the subject.
	Address string `yaml:"address" check:"address"`
	// Page that the links open instead, with the parameters token and opinion.
	URL string `yaml:"url" check:"http-url"`
}

// To returns the link that gives opinion o of the finding with token, or an empty string
// if no target is configured. Token and opinion are in the query of a URL, or in the
// subject of a mail.
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

// FeedbackCommand returns the command that gives opinion o of the finding with token.
func FeedbackCommand(token string, o Opinion) string {
	return "criticizer feedback " + token + " " + string(o)
}
