package llmsim

import (
	"regexp"
	"slices"
	"strings"
)

// The file types the rules know.
var (
	goCode       = []string{".go"}
	cCode        = []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".inl"}
	python       = []string{".py"}
	javaScript   = []string{".js", ".jsx", ".ts", ".tsx", ".mjs", ".html"}
	shell        = []string{".sh", ".bash"}
	braces       = slices.Concat(cCode, javaScript, []string{".java", ".cs", ".kt", ".php"})
	anyCode      = slices.Concat(goCode, python, braces, []string{".rb"})
	hashComments = []string{".py", ".sh", ".bash", ".rb"}
)

var rules = []rule{
	{
		at:       regexp.MustCompile(`^(?:<{4,7}|>{4,7})(?: |$)|^={4} (?:THEIRS|YOURS|BOTH|ORIGINAL) `),
		severity: "critical", category: "correctness", confidence: 0.97,
		title:       "Merge conflict marker left in the file",
		explanation: "The line is a marker that an unresolved merge leaves behind. Whatever reads the file next, a compiler or a person, gets both versions and the marker between them.",
		suggestion:  "Resolve the conflict and remove the marker lines.",
	},
	{
		at: regexp.MustCompile(`\[REDACTED:`), but: regexp.MustCompile(`\[REDACTED:(?:email|host|ip)`),
		severity: "high", category: "security", confidence: 0.9,
		title:       "Credential in the source",
		explanation: "The line holds a secret, which was masked before this review. Everybody who can read the depot can read it, and it stays in the history after it is removed.",
		suggestion:  "Revoke this credential, and read its successor from the environment or a secret store.",
	},
	{
		at:       regexp.MustCompile(`(?i)\b(?:ignore|disregard) (?:all |any )?(?:previous|prior|above|earlier) instructions|\b(?:ai|llm|automated) reviewers?\b.*\b(?:must|should|do) not\b`),
		severity: "medium", category: "security", confidence: 0.8,
		title:       "Text tries to steer the review",
		explanation: "The line speaks to whoever reviews the change and asks for findings to be left out. It has no purpose in the product and may hide a defect from a careless reader.",
		suggestion:  "Remove the text, and review the rest of the change with care.",
	},
	{
		at:       regexp.MustCompile(`\b(?:TODO|FIXME|XXX)\b`),
		severity: "low", category: "maintainability", confidence: 0.6,
		title:       "Unfinished work is submitted",
		explanation: "The line says itself that something is missing. Nobody is told of it once the change is in.",
		suggestion:  "Finish it now, or file a job and name it in the comment.",
	},
	{
		exts: goCode, at: regexp.MustCompile(`^\s*(?:\w+(?:\.\w+)*, )?_ :?= (?:\w+\.)*\w+\(.*\)\s*$`), but: regexp.MustCompile(`\brange\b|fmt\.Fp?rint`),
		severity: "medium", category: "error_handling", confidence: 0.7,
		title:       "Error is thrown away",
		explanation: "The last result of the call is assigned to the blank identifier. If the call fails, the code goes on with a result that means nothing, and nobody learns of it.",
		suggestion:  "Check the error, or say in a comment why it cannot matter.",
	},
	{
		exts: goCode, at: regexp.MustCompile(`^\s*panic\(`), but: regexp.MustCompile(`(?i)unreachable`),
		severity: "medium", category: "error_handling", confidence: 0.6,
		title:       "Panic instead of an error",
		explanation: "A panic ends the whole program unless a caller recovers. Whatever input or state leads here takes all other work of the process with it.",
		suggestion:  "Return an error and let the caller decide.",
	},
	{
		exts: goCode, at: regexp.MustCompile(`\bfmt\.Print(?:ln|f)?\(`),
		severity: "low", category: "maintainability", confidence: 0.45,
		title:       "Debug output on standard output",
		explanation: "The line prints to standard output, past the program's logger. In a program whose output others read it also corrupts that output.",
		suggestion:  "Remove it, or log it with the logger.",
	},
	{
		exts: javaScript, at: regexp.MustCompile(`\bconsole\.log\(|\bdebugger\b`),
		severity: "low", category: "maintainability", confidence: 0.5,
		title:       "Debug output left in",
		explanation: "The line shows internal values in the console of every user.",
		suggestion:  "Remove it.",
	},
	{
		exts: braces, at: regexp.MustCompile(`\bcatch\s*(?:\([^)]*\))?\s*\{\s*\}`),
		severity: "medium", category: "error_handling", confidence: 0.8,
		title:       "Exception is swallowed",
		explanation: "The handler is empty. When the code above fails, nobody learns of it, and the program goes on with half of the work done.",
		suggestion:  "Handle the exception, log it with its cause, or let it pass.",
	},
	{
		exts: python, at: regexp.MustCompile(`^\s*except\b.*:\s*(?:pass\s*)?$`), excused: handles,
		severity: "medium", category: "error_handling", confidence: 0.8,
		title:       "Exception is swallowed",
		explanation: "The handler does nothing. When the code above fails, nobody learns of it, and the program goes on with half of the work done.",
		suggestion:  "Catch the exceptions that can be handled, and let the others pass.",
	},
	{
		exts: python, at: regexp.MustCompile(`^\s*except\s*:`),
		severity: "medium", category: "error_handling", confidence: 0.7,
		title:       "Handler catches everything",
		explanation: "A bare except also catches KeyboardInterrupt and SystemExit, so the program cannot be stopped here, and every bug in the block looks like the failure it expects.",
		suggestion:  "Name the exceptions, or use `except Exception`.",
	},
	{
		exts: python, at: regexp.MustCompile(`[=!]= ?None\b`),
		severity: "low", category: "correctness", confidence: 0.8,
		title:       "None is compared with ==",
		explanation: "The operator calls the object's own comparison, which may return anything, for arrays even an array. Only `is` asks for None itself.",
		suggestion:  "Use `is None` or `is not None`.",
	},
	{
		exts: python, at: regexp.MustCompile(`^\s*(?:async )?def \w+\(.*=\s*(?:\[\]|\{\})\s*[,)]`),
		severity: "medium", category: "correctness", confidence: 0.85,
		title:       "Mutable default argument",
		explanation: "The default is made once, when the function is defined. What one call puts into it is there in the next.",
		suggestion:  "Default to None and make the object inside.",
	},
	{
		exts: python, at: regexp.MustCompile(`\bshell\s*=\s*True\b|\bos\.system\(`),
		severity: "high", category: "security", confidence: 0.6,
		title:       "Command goes through a shell",
		explanation: "The shell interprets every character of the command. A name with a semicolon or a backquote in it runs a command of its own.",
		suggestion:  "Pass the arguments as a list, without a shell.",
	},
	{
		exts: python, at: regexp.MustCompile(`\bpickle\.loads?\(|\byaml\.load\(`), but: regexp.MustCompile(`SafeLoader`),
		severity: "high", category: "security", confidence: 0.7,
		title:       "Input is decoded by code it chooses",
		explanation: "This decoder makes any object that its input names. Who can change the input can run code here.",
		suggestion:  "Use JSON, or `yaml.safe_load`.",
	},
	{
		exts: cCode, at: regexp.MustCompile(`\b(?:strcpy|strcat|v?sprintf|gets)\s*\(`),
		severity: "high", category: "security", confidence: 0.75,
		title:       "Copy without a bound",
		explanation: "The function writes as many bytes as its source has. A source longer than the buffer overwrites what lies behind it.",
		suggestion:  "Use the form that takes the size of the buffer, such as snprintf, and handle truncation.",
	},
	{
		exts: cCode, at: regexp.MustCompile(`=\s*(?:\([^)]*\)\s*)?(?:m|c|re)alloc\s*\(`), excused: checksPointer,
		severity: "medium", category: "error_handling", confidence: 0.6,
		title:       "Allocation is not checked",
		explanation: "The next lines use the pointer without a look at it. When memory runs out it is null, and the program crashes or writes through it.",
		suggestion:  "Check the pointer before its first use.",
	},
	{
		exts: slices.Concat(cCode, javaScript, []string{".java", ".php"}), at: regexp.MustCompile(`\b(?:if|while)\s*\(\s*[\w.>\-\[\]]+\s*=\s*[\w"'.\-]+\s*\)`),
		severity: "high", category: "correctness", confidence: 0.75,
		title:       "Assignment where a comparison is meant",
		explanation: "The condition assigns. It changes the variable and is true for every value that is not zero, whatever the variable was.",
		suggestion:  "Compare with ==; if the assignment is meant, put it in its own parentheses.",
	},
	{
		exts: javaScript, at: regexp.MustCompile(`\.(?:innerHTML|outerHTML)\s*\+?=[^=]|\bdocument\.write\(`), but: regexp.MustCompile("=\\s*(?:''|\"\"|``)\\s*;?\\s*$"),
		severity: "high", category: "security", confidence: 0.65,
		title:       "Text is inserted as HTML",
		explanation: "The value is parsed as HTML. If any part of it comes from a user or a server, it can run a script in the page.",
		suggestion:  "Set textContent, or escape the value.",
	},
	{
		exts:     anyCode,
		at:       regexp.MustCompile(`(?i)["'](?:select\s.+\sfrom|insert\s+into|update\s.+\sset|delete\s+from)\b.*(?:["']\s*(?:\+|%|\.\s*\w)|%[sv]|\{\w)`),
		severity: "high", category: "security", confidence: 0.7,
		title:       "SQL is put together from strings",
		explanation: "A value becomes part of the statement's text. One that holds a quote ends the literal and goes on as SQL.",
		suggestion:  "Use a placeholder and pass the value as a parameter.",
	},
	{
		exts: anyCode, at: regexp.MustCompile(`\bInsecureSkipVerify:\s*true|\bverify\s*=\s*False|\brejectUnauthorized:\s*false|CURLOPT_SSL_VERIFYPEER,\s*0`),
		severity: "high", category: "security", confidence: 0.85,
		title:       "Certificate is not verified",
		explanation: "The connection is encrypted to whoever answers. Anybody on the way can read and change what passes.",
		suggestion:  "Verify the certificate; trust the private authority explicitly if there is one.",
	},
	{
		exts: javaScript, at: regexp.MustCompile(`\beval\(|\bnew Function\(`),
		severity: "high", category: "security", confidence: 0.65,
		title:       "Text is run as code",
		explanation: "Whatever reaches this call runs with the rights of the page.",
		suggestion:  "Parse the text as data, for example with JSON.parse.",
	},
	{
		exts: shell, at: regexp.MustCompile(`\brm\s+-\w*r\w*\s+(?:-\w+\s+)*\$`),
		severity: "high", category: "correctness", confidence: 0.7,
		title:       "Unquoted variable in a recursive delete",
		explanation: "If the variable is empty or holds a blank, the command deletes something else than it names.",
		suggestion:  "Quote the variable and stop when it is not set: \"${dir:?}\".",
	},
}

// handles reports whether an except clause does anything.
func handles(s string, next []string) bool {
	if strings.HasSuffix(strings.TrimSpace(s), "pass") {
		return false
	}
	return len(next) == 0 || strings.TrimSpace(next[0]) != "pass"
}

var pointerCheck = regexp.MustCompile(`\bNULL\b|\bnullptr\b|if\s*\(\s*!|\bassert\b`)

// checksPointer reports whether an allocation is looked at before its use.
func checksPointer(s string, next []string) bool {
	return pointerCheck.MatchString(s) || slices.ContainsFunc(next, pointerCheck.MatchString)
}
