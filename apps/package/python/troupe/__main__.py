from troupe_rl.launch import main

main()
