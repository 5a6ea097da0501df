module reside.example/tools/pause

go 1.26
