package llmsim

import (
	"regexp"
	"strings"
)

// A complaint is the message in a prompt that asks for a rewrite.
type complaint struct {
	fence    string
	text     string
	from, to string // base languages
}

var (
	beginMessage = regexp.MustCompile(`(?m)^=== begin message ([0-9a-f]+) ===\n`)
	languages    = regexp.MustCompile(`It was written in [^;]*\(([a-z]{2,3})[A-Za-z0-9-]*\); write it in [^.]*\(([a-z]{2,3})[A-Za-z0-9-]*\)\.`)
	placeholder  = regexp.MustCompile(`\[REDACTED:[^\]\n]*\]`)
	harsh        = regexp.MustCompile(`(?i)\b(?:always|never|stupid|lazy|idiotic|damn)\b ?|!+`)
)

// parseComplaint parses the message out of a prompt.
func parseComplaint(prompt string) (complaint, bool) {
	m := beginMessage.FindStringSubmatchIndex(prompt)
	if m == nil {
		return complaint{}, false
	}
	c := complaint{fence: prompt[m[2]:m[3]]}
	text, _, _ := strings.Cut(prompt[m[1]:], "=== end message "+c.fence+" ===")
	c.text = strings.TrimSuffix(text, "\n")
	if l := languages.FindStringSubmatch(prompt); l != nil {
		c.from, c.to = l[1], l[2]
	}
	return c, true
}

// phrases have the same meaning in several languages.
var phrases = map[string]string{
	"de": "Mir ist etwas wichtig, das ich gern in Ruhe mit dir besprechen würde, damit wir gemeinsam eine Lösung finden können.",
	"en": "There is something that matters to me, and I would like to talk about it calmly so that we can find a solution together.",
	"es": "Hay algo que es importante para mí y me gustaría hablarlo con calma para que podamos encontrar juntos una solución.",
	"fr": "Il y a quelque chose qui compte pour moi et j'aimerais en parler calmement afin que nous trouvions ensemble une solution.",
	"ja": "大切に思っていることがあるので、落ち着いて話し合い、一緒に解決策を見つけたいです。",
}

// rewrite returns the message without its harsh words or, if it is to be
// translated, a fixed phrase with the message's placeholders.
func (c complaint) rewrite() string {
	phrase, known := phrases[c.to]
	if c.from == c.to || !known {
		return strings.TrimSpace(harsh.ReplaceAllString(c.text, ""))
	}
	return strings.Join(append([]string{phrase}, placeholder.FindAllString(c.text, -1)...), " ")
}

// answer returns the model's answer, changed as k says.
func (c complaint) answer(k FaultKind) message {
	text := c.rewrite()
	switch k {
	case LostPlaceholder:
		text = placeholder.ReplaceAllString(text, "it")
	case MadePlaceholder:
		text += " [REDACTED:password:0000]"
	case BadSchema:
		return message{content: `{"rewritten":"text","score":1}`, finish: "stop"}
	}
	return answer(encoded(map[string]string{"rewrite": text}), k)
}
