package read

import "testing"

var shellCases = []formatCase{
	{name: "assignments", part: true, text: "A=x B='y z' cmd\nexport C=\"w\"\nD=(p 'q')\nE=$F\n", want: `
		A = <x>
		B = y z
		C = w
		D.- = <p>
		D.- = q`},
	{name: "defaults", part: true, text: "echo ${PASSWORD:-hunter2} \"${B:='x'}\"\n", want: `
		PASSWORD = <hunter2>
		B = x`},
	{name: "options on continued lines", part: true, text: "deploy --host h \\\n  -x \\\n  --password 'a b' --token=t --verbose --user bob # c\n", want: `
		deploy.host = <h>
		deploy.password = a b
		deploy.token = <t>
		deploy.user = <bob>`},
	{name: "env", part: true, text: "env PASSWORD=x run\ndocker run -e 'TOKEN=y z' -e B=\"w\" img\n", want: `
		env.PASSWORD = <x>
		docker.TOKEN = y z
		docker.B = w`},
	{name: "not a script", part: true, text: "if then (\n"},
}

func TestReadShell(t *testing.T) { testFormat(t, readShell, shellCases) }

func FuzzReadShell(f *testing.F) { fuzzFormat(f, readShell, shellCases) }
