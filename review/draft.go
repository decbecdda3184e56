package review

// A Draft is the result of the model's review: checked against the schema, anchored and
// filtered, but not yet redacted as a whole.
type Draft struct {
	Record
	Findings []Finding
	Coverage Coverage
	Unread   []Unread
	Context  ContextUse
}

// An Unread is a part of a change that was planned to be read, and that no model could read.
type Unread struct {
	Path  string     `json:"path"`
	Lines string     `json:"lines"` // of the new content, such as 12-40
	Why   SkipReason `json:"why"`
	// Class is the class of the model's last error, empty if a budget is the cause, and Context
	// the endpoint's status, code and request ID, as far as it named them.
	Class   string `json:"error_class,omitempty"`
	Context string `json:"context,omitempty"`
}

// A ContextUse counts the blocks of code around the change, in all calls.
type ContextUse struct {
	Shown int `json:"shown"`
	// LeftOut counts the blocks without room in a prompt.
	LeftOut int `json:"left_out,omitempty"`
}

// Add returns the sum of both.
func (u ContextUse) Add(other ContextUse) ContextUse {
	return ContextUse{u.Shown + other.Shown, u.LeftOut + other.LeftOut}
}

// A Proof is how it is known that the model received a part of the change in full.
type Proof struct {
	Files int `json:"files"` // that the part has lines of
	// Codes is the number of check codes in the prompt. The answer had all of them.
	Codes int `json:"codes"`
	// PromptTokens is what the endpoint reported, and agrees with the size of the prompt;
	// 0 if it reported nothing.
	PromptTokens int `json:"prompt_tokens,omitempty"`
}

// A DropReason is why a remark of the model is not a finding, or a finding has no
// replacement. It is shown to people and is wire format.
type DropReason string

// The reasons, in the order of the checks.
const (
	DropInvalid     DropReason = "not in the form that was asked for"
	DropUnknownPath DropReason = "about a file the model was not shown"
	DropMarker      DropReason = "about a placeholder or frame of the prompt, not about code"
	DropOutside     DropReason = "about code the change does not touch"
	DropNoChange    DropReason = "suggests the code as it is"
	DropNitpick     DropReason = "nitpick"
	DropMinor       DropReason = "below the least severity"
	DropWrong       DropReason = "accepted to be wrong before"
	DropDuplicate   DropReason = "repeats another finding"
	DropRefuted     DropReason = "refuted by the verification pass"
	DropOverLimit   DropReason = "over the limit of findings in one mail"
)

// DropReasons lists all reasons.
func DropReasons() []DropReason {
	return []DropReason{
		DropInvalid, DropUnknownPath, DropMarker, DropOutside, DropNoChange, DropNitpick, DropMinor,
		DropWrong, DropDuplicate, DropRefuted, DropOverLimit,
	}
}

// The reasons for dropping a replacement, in the order of the checks.
const (
	DropFixPlace  DropReason = "does not apply to the quoted lines"
	DropFixShape  DropReason = "changes indentation or line ends"
	DropFixOther  DropReason = "repeats the lines around it"
	DropFixSecret DropReason = "holds a secret or a placeholder"
	DropFixSyntax DropReason = "not shown to parse"
)

// FixDropReasons lists the reasons for dropping a replacement.
func FixDropReasons() []DropReason {
	return []DropReason{DropFixPlace, DropFixShape, DropNoChange, DropFixOther, DropFixSecret, DropFixSyntax}
}

// A Check counts the results of the verification pass, which tries to refute
// findings.
type Check struct {
	Checked int `json:"checked"`
	Removed int `json:"removed,omitempty"`
	Lowered int `json:"lowered,omitempty"`
	// Rejected counts the objections without verifiable evidence. They had no effect.
	Rejected int `json:"rejected,omitempty"`
	// Failed counts the findings whose verification failed; they are unchanged. Why is
	// the error class of the last failure.
	Failed int    `json:"failed,omitempty"`
	Why    string `json:"why,omitempty"`
}

// A Switch records that a fallback model was called because another model failed with
// the error class Why.
type Switch struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Why   string `json:"why"`
	Calls int    `json:"calls"`
}

// A Record describes how a review was made, without its content.
type Record struct {
	Model string `json:"model"`
	// StandIn is set if a simulation answered in place of a model.
	StandIn      bool   `json:"stand_in,omitempty"`
	PromptDigest string `json:"prompt_digest,omitempty"`
	Usage        Usage  `json:"usage"` // of all attempts
	// Anchors counts the model's remarks with a place, including those dropped later.
	Anchors map[Anchor]int     `json:"anchors,omitempty"`
	Dropped map[DropReason]int `json:"dropped,omitempty"` // remarks that are not findings
	// FixesDropped counts the replacements that failed their check. The findings stay.
	FixesDropped map[DropReason]int `json:"fixes_dropped,omitempty"`
	// Check counts the results of the verification pass, nil if there was to be none.
	Check    *Check   `json:"check,omitempty"`
	Switches []Switch `json:"switches,omitempty"`
	// Cost is nil if it is not known exactly.
	Cost *Cost `json:"cost,omitempty"`
	// Proofs has one entry per part that the model received, in no order.
	Proofs []Proof `json:"proofs,omitempty"`
	// Rules are the files with rules of teams.
	Rules []RuleSource `json:"rules,omitempty"`
}
