package llm

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/llm/llmsim"
	"github.com/criticizer/criticizer/review"
)

// A committed secret is a finding without a model, and the outcome is never clean. What may be
// an example is not one: a test's password, a value that is not random, a hash, an old line.
func TestCommittedSecretsAreFindings(t *testing.T) {
	t.Parallel()
	random := func(n int) string {
		return strings.NewReplacer("+", "x", "/", "y", "=", "z").Replace(base64.StdEncoding.EncodeToString([]byte(rand.Text() + rand.Text()))[:n])
	}
	body := make([]string, 0, 8)
	for range 8 {
		body = append(body, random(64))
	}
	key := append(append([]string{"-----BEGIN RSA PRIVATE " + "KEY-----"}, body...), "-----END RSA PRIVATE "+"KEY-----")
	password := "q7" + random(22) + "9Zk4"
	for name, tc := range map[string]struct {
		file review.File
		want []int // lines
	}{
		"a token of an issuer":        {added("//depot/main.tf", `region = "eu"`, `key = "AK`+`IA`+strings.ToUpper(rand.Text()[:16])+`"`), []int{2}},
		"the password of a URI":       {added("//depot/app.yaml", "name: app", "url: postgres://app:"+password+"@db.internal:5432/app"), []int{2}},
		"a private key, once":         {added("//depot/server.pem", key...), []int{2}},
		"a random password":           {added("//depot/app.go", "package app", `const password = "`+password+`"`), []int{2}},
		"a real token in a test":      {added("//depot/app_test.go", "package app", `const token = "gh`+`p_YgTCHIWzVY1zach2jNQYdgaJTvSGN73kleC8"`), []int{2}},
		"an invented token in a test": {added("//depot/app_test.go", "package app", `const token = "gh`+`p_YgTCHIWzVY1zach2jNQYdgaJTvSGN73kleC9"`), nil},
		"in a test":                   {added("//depot/app_test.go", "package app", `const password = "`+password+`"`), nil},
		"in a fixture":                {added("//depot/test/fixtures/app.yaml", "url: postgres://app:"+password+"@db.internal:5432/app"), nil},
		"a word":                      {added("//depot/app.yaml", "password: changeme-please"), nil},
		"removed":                     {review.File{DepotPath: "//depot/app.yaml", Action: review.ActionEdit, Diff: "@@ -1,2 +1,1 @@\n-password: " + password + "\n name: app\n"}, nil},
	} {
		s := simulate(t, llmsim.New(llmsim.Config{}), nil)
		d, err := s.review(t, tc.file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var lines []int
		for _, f := range d.Findings {
			if f.Severity == review.SeverityHigh && f.Category == review.CategorySecurity && strings.HasPrefix(f.Title, "A secret is committed") {
				lines = append(lines, f.StartLine)
			}
			if strings.Contains(fmt.Sprint(f), password) || strings.Contains(fmt.Sprint(f), body[3]) {
				t.Errorf("%s: the finding holds the secret", name)
			}
		}
		if fmt.Sprint(lines) != fmt.Sprint(tc.want) {
			t.Errorf("%s: findings on lines %v, want %v", name, lines, tc.want)
		}
		if outcome := judged(d); len(tc.want) > 0 && outcome != review.OutcomeFindings {
			t.Errorf("%s: outcome %s, want findings", name, outcome)
		}
	}
}
