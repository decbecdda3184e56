package selection

import (
	"github.com/criticizer/criticizer/internal/glob"
	"github.com/criticizer/criticizer/review"
)

// secretPaths are files for credentials or keys.
var secretPaths = glob.MustParse(
	".env", ".env.*", "*.env", ".envrc",
	"id_{rsa,dsa,ecdsa,ed25519,ecdsa_sk,ed25519_sk,xmss}", ".ssh/**", "*.ppk",
	"*.{pem,key,p8,p12,pfx,jks,jceks,bks,keystore,kdb,kdbx,keytab,snk,jwk}", ".gnupg/**", "secring.*",
	".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf",
	".git-credentials", ".htpasswd", ".dockercfg", ".docker/config.json", ".boto", ".s3cfg", ".vault-token",
	".p4tickets", "p4tickets.txt", ".p4passwd",
	".aws/credentials", ".azure/{accesstokens,azureprofile,msal_token_cache,service_principal_entries}*", ".config/gcloud/**", ".kube/config", "kubeconfig", "*.kubeconfig",
	".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".terraformrc", "*.tfstate", "*.tfstate.*",
	"credentials.{json,xml,yml,yaml,ini}", "secrets.{json,xml,yml,yaml,ini,toml,properties}",
	"service{-,_,}account*.json", "client_secret*.json", "*.ovpn", "*.mobileprovision",
)

// secretSamples are exceptions: samples without secrets.
var secretSamples = glob.MustParse("*.env.{example,sample,template,dist}", ".env.{example,sample,template,dist}", "{example,sample,template}.env")

// binaries are files that no program reads as source text. The author of a change chooses
// the Perforce type of a file: a script of type binary is still a script.
var binaries = glob.MustParse(
	"*.{png,jpg,jpeg,jpe,gif,bmp,tif,tiff,tga,dds,hdr,exr,ico,icns,cur,webp,avif,heic,psd,psb,kra,xcf,ai,indd,raw,jp2,ktx,ktx2,astc,pvr}",
	"*.{wav,mp3,ogg,oga,flac,aac,m4a,aif,aiff,opus,wma,mid,bank,wem,bnk,fsb,mp4,m4v,mov,avi,mkv,webm,wmv,mpg,mpeg,bik,bk2,usm,ogv,gifv}",
	"*.{ttf,otf,ttc,woff,woff2,eot,fon,pfb,pdf,doc,docx,xls,xlsx,xlsm,ppt,pptx,odt,ods,odp,vsd,vsdx,epub,one,msg,pub}",
	"*.{zip,gz,tgz,bz2,xz,zst,7z,rar,tar,jar,war,ear,aar,nupkg,whl,egg,deb,rpm,msi,dmg,iso,cab,apk,aab,ipa,pak,pck,ucas,utoc}",
	"*.{uasset,umap,ubulk,fbx,blend,max,ma,mb,c4d,3ds,obj,glb,abc,usd,usdc,usdz,ztl,spp,sbsar,vdb,upk,unitypackage,bundle,assetbundle,bytes,nif,hkx}",
	"*.{exe,dll,so,dylib,lib,a,o,obj,pdb,ilk,idb,pch,res,sys,ocx,com,class,pyc,pyd,wasm,ko,elf,hex,bin,dat,db,sqlite,mdb,accdb,dwg,dxf,sldprt,sldasm,step,stp,prt,mat,npy,npz,h5,onnx,pb,tflite,pt,parquet,mo,swf,fla}",
)

// IsBinary reports whether the name of a file is one of a binary format.
func IsBinary(depotPath string) bool {
	_, ok := binaries.Match(depotPath)
	return ok
}

// builtIn lists the patterns that Include overrides. The first match gives the reason.
var builtIn = []struct {
	reason   review.SkipReason
	patterns glob.List
}{
	{review.SkipVendored, glob.MustParse(
		"vendor/**", "vendored/**", "_vendor/**", "godeps/**", "node_modules/**", "bower_components/**", "jspm_packages/**",
		"third_party/**", "third-party/**", "thirdparty/**", "3rdparty/**", "3rd_party/**", "3rd-party/**",
		"site-packages/**", "__pypackages__/**", ".venv/**", "ios/pods/**", "carthage/{build,checkouts}/**",
		".yarn/{cache,releases,plugins,sdks}/**", ".pnp.{c,}js", ".bundle/**",
	)},
	{review.SkipLockFile, glob.MustParse(
		"package-lock.json", "packages-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock",
		"go.sum", "go.work.sum", "cargo.lock", "gemfile.lock", "gems.locked", "podfile.lock", "cartfile.resolved", "package.resolved",
		"composer.lock", "poetry.lock", "pdm.lock", "uv.lock", "pipfile.lock", "pixi.lock", "conda-lock.yml",
		"packages.lock.json", "project.assets.json", "paket.lock", "mix.lock", "rebar.lock", "pubspec.lock", "flake.lock",
		"gradle.lockfile", "buildscript-gradle.lockfile", ".terraform.lock.hcl", "conan.lock", "module.bazel.lock",
		"stack.yaml.lock", "cabal.project.freeze", "chart.lock", "elm-stuff/**",
	)},
	{review.SkipGenerated, glob.MustParse(
		"*.pb.{go,cc,h,c,swift,dart}", "*.pb.gw.go", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb.{js,ts,rb}", "*_pb.d.ts", "*_grpc_pb.{js,d.ts}",
		"*.designer.{cs,vb}", "*.g.{cs,i.cs,dart,ts}", "*.freezed.dart", "*.generated.*", "*_generated.*", "*.gen.{go,ts,cs,cpp,h}", "zz_generated*",
		"bindata.go", "__generated__/**", "*.feature.cs",
		"*.min.{js,mjs,css}", "*.bundle.{js,css}", "*.{js,mjs,css,ts}.map", "__snapshots__/**", "*.snap",
		"moc_*.cpp", "*.moc", "ui_*.h", "qrc_*.cpp", "*.tab.{c,h,cc,hh}", "lex.yy.*",
		"*.{meta,prefab,unity,asset,mat,anim,controller,overridecontroller,playable,physicmaterial,lighting,spriteatlas}",
		"*.{vg,sdf,spef,spf,edf,edif,lef,gds}", "*_netlist.{v,sv,vhd,vhdl}", "*.netlist", "*.mif",
		"*.{pbxproj,xcuserstate}", "gradle/wrapper/**", "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd",
	)},
}
